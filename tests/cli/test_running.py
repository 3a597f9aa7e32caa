# SPDX-License-Identifier: MIT
"""How is COMMAND started, what is passed to it, and which results can it
return?"""

import os
import resource
import subprocess
import time

from handled import Handled
from program import PROGRAM, main


class Arguments(Handled):
    def out(self, *arguments, keys=b"k y\n", status=0, **rest):
        ended = self.run_keys(keys, "-q", *arguments, **rest)
        self.assertEqual(ended.status, status, ended.err)
        return ended.out.decode()

    def test_key_is_appended_or_inserted(self):
        self.assertEqual(self.out("echo", "1"), "1 k y\n")
        self.assertEqual(self.out("echo", "{}", "2"), "k y 2\n")
        self.assertEqual(self.out("echo", "<{}|{}>"), "<k y|k y>\n")

    def test_replacement_text_can_be_chosen(self):
        self.assertEqual(self.out("-I", "@", "echo", "{}", "@@"), "{} k yk y\n")
        self.assertEqual(self.out("-IKEY", "echo", "{}"), "{} k y\n")

    def test_key_may_be_the_command(self):
        self.assertEqual(self.out("{}", keys=b"pwd\n"),
                         os.path.realpath(self.dir) + "\n")

    def test_dry_run_prints_quoted_commands(self):
        out = self.out("--dry-run", "touch", "it's", "{}",
                       keys=b"a b\n$(x)\n-f\na b\n")
        self.assertEqual(out, "touch 'it'\\''s' 'a b'\n"
                              "touch 'it'\\''s' '$(x)'\ntouch 'it'\\''s' -f\n")
        self.assertEqual(os.listdir(self.dir), [])

    def test_verbose_prints_commands_to_stderr(self):
        ended = self.run_keys(b"a b\nc\n", "-q", "-t", "echo", "x")
        self.assertEqual(ended.out, b"x a b\nx c\n")
        self.assertEqual(ended.err, b"echo x 'a b'\necho x c\n")

    def test_script_without_interpreter_runs_in_the_shell(self):
        self.write("script", b'echo "$0" "$1"\n')
        os.chmod(self.path("script"), 0o755)
        self.assertEqual(self.out("./script"), "./script k y\n")

    def test_arguments_too_long_for_exec_fail_the_key(self):
        ended = self.run_keys(b"k" * 65536 + b"\nb\n", "true", "{}{}")
        self.assertEqual(ended.status, 123)
        self.assertIn(b": cannot run 'true': Argument list too long\n",
                      ended.err)
        self.assertIn(b"2 keys, 1 ok, 1 failed, 0 left; 2 adds; 0 retries",
                      ended.err)


class Environment(Handled):
    def test_run_has_variables(self):
        self.start("-q", "-P2", "--name=things", "--priority=7",
                   "--timeout=1h", "--", "sh", "-c",
                   "tr '\\0' '\\n' </proc/$$/environ | grep ^WQ_ |"
                   "grep -Ev '^WQ_(PROGRAM|HANDLER)' >env",
                   env={"WQ_KEY": "no", "WQ_FENCE": "no"}).communicate(b"k y\n")
        lines = self.read("env").decode().splitlines()
        env = dict(line.split("=", 1) for line in lines)
        self.assertEqual(len(env), len(lines))  # no variable is set twice
        deadline = int(env.pop("WQ_DEADLINE"))
        self.assertAlmostEqual(deadline, time.time() + 3600, delta=60)
        self.assertGreaterEqual(int(env.pop("WQ_FENCE")), 1)
        self.assertGreaterEqual(int(env.pop("WQ_RESULT_FD")), 3)
        self.assertEqual(env, {
            "WQ_KEY": "k y", "WQ_NAME": "things", "WQ_ATTEMPT": "1",
            "WQ_PRIORITY": "7", "WQ_SLOT": "1"})

    def test_attempt_and_fence_grow(self):
        self.run_keys(b"a\n", "-q", "--retries=2", "--backoff=1ms",
                      *self.script("echo $WQ_ATTEMPT $WQ_FENCE >>log; exit 1"))
        attempts, fences = zip(*self.log())
        self.assertEqual(attempts, ("1", "2", "3"))
        self.assertEqual(list(fences), sorted(set(fences), key=int))

    def test_no_deadline_without_a_timeout(self):
        ended = self.run_keys(b"a\n", "-q", "sh", "-c",
                              "echo ${WQ_DEADLINE-none}")
        self.assertEqual(ended.out, b"none\n")

    def test_very_long_timeout_has_a_deadline(self):
        ended = self.run_keys(b"a\n", "-q", "--timeout=100000d", "sh", "-c",
                              "echo $WQ_DEADLINE")
        self.assertAlmostEqual(int(ended.out), time.time() + 100000 * 86400,
                               delta=60)

    def test_variable_of_the_key_can_be_chosen(self):
        ended = self.run_keys(b"a b\n", "-q", "--env-key=NAME", "sh", "-c",
                              'echo "$NAME,${WQ_KEY-}"',
                              env={"WQ_KEY": "ours"})
        self.assertEqual(ended.out, b"a b,ours\n")

    def test_stdin_is_empty_and_other_files_are_closed(self):
        ended = self.run_keys(b"a\nb\n", "-q", "--joblog=j", "--json=e",
                              "sh", "-c",
                              "cat; ls -l /proc/self/fd | grep -o '[0-9] ->.*'")
        lines = ended.out.decode().splitlines()
        self.assertEqual(lines[0], "0 -> /dev/null")
        numbers = [line.split()[0] for line in lines]
        # ls has the directory open, too
        self.assertEqual(numbers, ["0", "1", "2", "3", "4"] * 2)

    def test_inherited_files_are_passed_on(self):
        with open(self.path("given"), "wb") as file:
            fd = file.fileno()
            ended = self.run_keys(
                b"a\n", "-q", *self.script(
                    "echo here >&%d; [ $WQ_RESULT_FD != %d ]" % (fd, fd)),
                pass_fds=[fd])
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(self.read("given"), b"here\n")

    def test_stdin_stdout_and_stderr_may_be_closed(self):
        status = subprocess.run(
            ["sh", "-c", '"$0" run -akeys -- sh -c "echo x; echo $1 >>log" '
             "0<&- 1>&- 2>&-", PROGRAM], check=False, cwd=self.dir).returncode
        self.assertEqual(status, 125)  # no such file
        self.write("keys", b"a\nb\n")
        subprocess.run(
            ["sh", "-c", '"$0" run -akeys -- sh -c "echo \\$WQ_KEY >>log" '
             "0<&- 1>&- 2>&-", PROGRAM], check=True, cwd=self.dir)
        self.assertEqual(self.log(), [["a"], ["b"]])

    def test_signal_mask_and_handlers_are_restored(self):
        query = "exec grep '^Sig[BI]' /proc/self/status"
        here = subprocess.run(["sh", "-c", query], check=True,
                              stdout=subprocess.PIPE).stdout
        ended = self.run_keys(b"a\n", "-q", *self.script(query))
        self.assertEqual(len(ended.lines()), 2)
        self.assertEqual(ended.out, here)

    def test_run_has_its_own_process_group(self):
        process = self.started(b"a\n")
        self.await_begun("a")
        self.assertEqual(os.getpgid(self.pid("a")), self.pid("a"))
        self.assertNotEqual(os.getpgid(self.pid("a")), os.getpgid(process.pid))
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)


class Slots(Handled):
    def test_max_procs_limits_runs(self):
        process = self.started(b"a\nb\nc\nd\n", "-P2", "--json=events")
        self.await_begun("a", "b")
        self.let_go("b")
        self.await_begun("a", "b", "c")
        self.let_go("a")
        self.await_begun("a", "b", "c", "d")
        self.let_go("c")
        self.let_go("d")
        self.assertEqual(self.ended(process).status, 0)
        slots = {event["key"]: event["slot"] for event in self.events()
                 if event["event"] == "started"}
        self.assertEqual(slots, {"a": 1, "b": 2, "c": 2, "d": 1})

    def test_max_procs_0_is_the_number_of_cpus(self):
        cpus = len(os.sched_getaffinity(0))
        keys = "abcdefghijklmnopqrstuvwxyz"[:min(cpus + 1, 26)]
        process = self.started("\n".join(keys).encode(), "-P0", gates=keys)
        self.await_begun(*keys[:cpus])
        for key in keys:
            self.let_go(key)
        self.assertEqual(self.ended(process).status, 0)

    def test_max_procs_0_counts_only_cpus_that_it_may_use(self):
        one = {min(os.sched_getaffinity(0))}
        process = self.started(
            b"a\nb\n", "-P0", "--json=events",
            preexec_fn=lambda: os.sched_setaffinity(0, one))
        self.await_begun("a")
        self.let_go("a")
        self.let_go("b")
        self.assertEqual(self.ended(process).status, 0)
        slots = [event["slot"] for event in self.events()
                 if event["event"] == "started"]
        self.assertEqual(slots, [1, 1])

    def test_many_runs_raise_the_limit_of_files(self):
        # Their pipes are more than the limit of open files; children still get
        # the old limit.
        ended = self.run_keys(
            b"".join(b"%d\n" % i for i in range(200)), "-q", "-P200", "--",
            "sh", "-c", "ulimit -Sn", preexec_fn=lambda: limit_files(128))
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(set(ended.lines()), {"128"})

    def test_too_few_descriptors_reduce_the_slots(self):
        # A run that starts needs six descriptors: too many for all.
        keys = "abcdefgh"
        process = self.started(
            "\n".join(keys).encode(), "-P8", "--retries=0", "--json=events",
            gates=keys, preexec_fn=lambda: limit_files(28, 28))
        for key in keys:
            self.let_go(key)
        ended = self.ended(process)
        self.assertIn(b"from now on at most", ended.err)
        self.assertIn(b"8 keys, 8 ok, 0 failed, 0 left", ended.err)
        self.assertEqual(ended.status, 0)
        self.assertEqual(sorted(self.begun()), list(keys))


def limit_files(soft, hard=None):
    if hard is None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class CannotRun(Handled):
    def test_missing_command_is_an_error(self):
        ended = self.run_keys(b"a\n", "--", "no-such-command")
        self.assertEqual(ended.status, 127)
        self.assertIn(b"cannot run 'no-such-command': No such file", ended.err)
        self.assertEqual(self.run_keys(b"", "./nope").status, 127)

    def test_command_that_is_not_executable_is_an_error(self):
        self.write("text", b"")
        for name in ("./text", "/"):
            ended = self.run_keys(b"a\n", "--", name)
            self.assertEqual(ended.status, 126)
            self.assertIn(b"Permission denied", ended.err)

    def test_path_search_skips_files_that_cannot_run(self):
        os.mkdir(self.path("one"))
        os.mkdir(self.path("two"))
        self.write("one/tool", b"")
        self.write("two/tool", b"#!/bin/sh\necho two\n")
        env = {"PATH": "one::two:" + os.environ["PATH"]}
        self.assertEqual(self.run_keys(b"a\n", "tool", env=env).status, 126)
        os.chmod(self.path("two/tool"), 0o755)
        self.assertEqual(self.run_keys(b"a\n", "tool", env=env).out, b"two\n")

    def test_command_that_is_removed_stops_wq(self):
        self.write("tool", b"#!/bin/sh\nrm tool\n")
        os.chmod(self.path("tool"), 0o755)
        ended = self.run_keys(b"a\nb\nc\n", "--pending-file=left", "./tool")
        self.assertEqual(ended.status, 127)
        self.assertIn(b"3 keys, 1 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(self.left(), [b"b", b"c"])

    def test_missing_interpreter_is_an_error(self):
        self.write("tool", b"#!/no/such/interpreter\n")
        os.chmod(self.path("tool"), 0o755)
        self.assertEqual(self.run_keys(b"a\n", "./tool").status, 127)

    def test_missing_command_that_is_the_key_fails_it(self):
        ended = self.run_keys(b"./none\ntrue\n", "--retries=0", "--", "{}")
        self.assertEqual(ended.status, 123)
        self.assertIn(b"2 keys, 1 ok, 1 failed", ended.err)


class Results(Handled):
    """What a handler writes to $WQ_RESULT_FD."""

    def test_result_may_add_keys(self):
        ended = self.run_keys(b"a\n", *self.script(
            'echo "$1" >>log; [ "$1" = a ] || exit 0\n'
            "for key in b 'c d' '=x' b; do echo \"add=$key\" >&$WQ_RESULT_FD;"
            " done; printf add=last >&$WQ_RESULT_FD"))
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(self.read("log"), b"a\nb\nc d\n=x\nlast\n")
        self.assertIn(b"5 keys, 5 ok, 0 failed, 0 left; 6 adds (17% ded",
                      ended.err)

    def test_result_adds_during_the_run(self):
        gates = {key: self.fifo("gate." + key) for key in "ab"}
        process = self.start("-P2", *self.script(
            "echo begin $1 >>log; [ $1 = b ] || echo add=b >&$WQ_RESULT_FD;"
            "read code <gate.$1; exit $code"))
        self.feed(process, b"a\n")
        self.await_begun("a", "b")
        for gate in gates.values():
            os.write(gate, b"0\n")
        self.assertEqual(self.ended(process).status, 0)

    def test_result_may_add_its_own_key(self):
        self.run_keys(b"a\n", *self.script(
            "echo $1 >>log; [ $(wc -l <log) -ge 3 ] || "
            "echo add=$1 >&$WQ_RESULT_FD"))
        self.assertEqual(self.read("log"), b"a\na\na\n")

    def test_result_may_add_many_keys(self):
        ended = self.run_keys(b"a\n", "--halt=now,done=1", *self.script(
            "seq 1 30000 | sed 's/.*/add=k&/' >&$WQ_RESULT_FD"))
        self.assertEqual(ended.status, 124)
        self.assertIn(b"30001 keys, 1 ok, 0 failed, 30000 left; 30001 adds",
                      ended.err)

    def test_result_sets_the_priority_of_added_keys(self):
        self.run_keys(b"a\nb\n", "--priority=1", *self.script(
            "echo $1 $WQ_PRIORITY >>log; [ $1 = a ] || exit 0\n"
            "printf 'add=low\\npriority=9\\nadd=high\\n' >&$WQ_RESULT_FD"))
        self.assertEqual(self.log(), [["a", "1"], ["high", "9"], ["b", "1"],
                                      ["low", "1"]])

    def test_result_sets_the_priority_of_the_retry(self):
        self.run_keys(b"a\nb\n", "--backoff=0s", *self.script(
            "echo $1 $WQ_PRIORITY >>log; [ $1$WQ_ATTEMPT = a1 ] || exit 0\n"
            "echo priority=5 >&$WQ_RESULT_FD; exit 1"))
        self.assertEqual(self.log(), [["a", "0"], ["a", "5"], ["b", "0"]])

    def test_requeue_after_a_success(self):
        ended = self.run_keys(b"a\n", "--json=events", *self.script(
            "echo $1 $WQ_ATTEMPT >>log; [ $(wc -l <log) -ge 3 ] || "
            "echo requeue-after=100ms >&$WQ_RESULT_FD"))
        self.assertEqual(ended.status, 0)
        self.assertGreaterEqual(ended.seconds, 0.2)
        self.assertEqual(self.log(), [["a", "1"]] * 3)
        self.assertEqual(self.finished("outcome"),
                         ["requeue", "requeue", "ok"])

    def test_requeue_after_replaces_the_backoff(self):
        ended = self.run_keys(b"a\n", "--retries=2", "--backoff=9999h,9999h", *self.script(
            "echo $WQ_ATTEMPT >>log; echo requeue-after=1ms >&$WQ_RESULT_FD;"
            "exit 1"))
        self.assertEqual(ended.status, 123)
        self.assertEqual(self.log(), [["1"], ["2"], ["3"]])

    def test_invalid_result_is_reported_once_per_run(self):
        ended = self.run_keys(b"a\n", *self.script(
            "printf 'x\\nrequeue-after=never\\npriority=\\nadd=\\n\\n' "
            ">&$WQ_RESULT_FD"))
        self.assertEqual(ended.status, 0)
        self.assertEqual(ended.err.count(b"bad line on"), 1)
        self.assertIn(b"a: bad line on $WQ_RESULT_FD: 'x'", ended.err)

    def test_result_with_too_long_a_key_is_refused(self):
        ended = self.run_keys(b"a\n", *self.script(
            "echo $1 >>log; [ $1 = a ] || exit 0;"
            "{ printf add=; head -c 65537 /dev/zero | tr '\\0' k; echo; "
            "echo add=b; } >&$WQ_RESULT_FD"))
        self.assertEqual(ended.err.count(b"bad line on"), 1)
        self.assertEqual(self.read("log"), b"a\nb\n")

    def test_result_descriptor_may_be_closed(self):
        ended = self.run_keys(b"a\nb\n", "-P2", "--", "sh", "-c",
                              "eval \"exec $WQ_RESULT_FD>&-\"; sleep 0.05")
        self.assertEqual(ended.status, 0)


class Stragglers(Handled):
    def test_straggler_does_not_hold_the_slot(self):
        gate = self.fifo("gate")
        process = self.start("-P1", *self.script(
            "echo $1 >>log; (read x <gate) & exit 0"))
        self.feed(process, b"a\nb\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.read("log"), b"a\nb\n")
        os.write(gate, b"\n\n")


if __name__ == "__main__":
    main()
