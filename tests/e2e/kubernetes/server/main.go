// SPDX-License-Identifier: MIT

// A Kubernetes API server for the end-to-end test: Kubernetes' own API
// machinery (custom resources, list, watch, status) in front of an etcd.
//
//	server --etcd URL --listen ADDRESS --directory DIRECTORY
//
// The test server of apiextensions-apiserver listens on a port that it chooses
// itself. A server that is killed and started again must come back at its old
// address, so this program listens on ADDRESS and forwards bytes. SIGUSR1 cuts
// the watches: it closes every connection whose last request is a second old and
// has begun to be answered.
//
// Once the server is up, the directory has the files `token` and `ca.crt` for
// its clients. Both may change when the server is started again. The program
// prints "ready" and serves until it is killed. The file `audit` there is the
// server's own log of the writes of a status: who, which, from when until when.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	testserver "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
)

// No such server: the API server asks it for no decision in this test.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [update, patch]
  resources: [{group: wq.example.com, resources: [widgets/status]}]
- level: None
`

// logger is what StartTestServer reports to.
type logger struct{}

func (logger) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (logger) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (logger) Logf(format string, args ...any)   {}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// start starts the API server, writes the files of its clients, and returns its
// address.
func start(etcd, directory string) string {
	config := filepath.Join(directory, "kubeconfig")
	audit := filepath.Join(directory, "policy")
	must(os.WriteFile(config, []byte(kubeconfig), 0o600))
	must(os.WriteFile(audit, []byte(policy), 0o600))
	server, err := testserver.StartTestServer(logger{}, nil, []string{
		"--etcd-servers", etcd,
		"--authentication-skip-lookup",
		"--authentication-kubeconfig", config,
		"--authorization-kubeconfig", config,
		"--kubeconfig", config,
		"--audit-policy-file", audit,
		"--audit-log-path", filepath.Join(directory, "audit"),
		"--disable-admission-plugins", "NamespaceLifecycle," +
			"MutatingAdmissionWebhook,ValidatingAdmissionWebhook," +
			"ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
	}, nil)
	must(err)

	serving := server.ServerOpts.RecommendedOptions.SecureServing
	ca, err := os.ReadFile(serving.ServerCert.CertKey.CertFile)
	must(err)
	must(os.WriteFile(filepath.Join(directory, "ca.crt"), ca, 0o600))
	must(os.WriteFile(filepath.Join(directory, "token"),
		[]byte(server.ClientConfig.BearerToken), 0o600))
	return serving.Listener.Addr().String()
}

// connection is one client of the forwarder.
type connection struct {
	client net.Conn
	mutex  sync.Mutex // guards all below, and is held while a request goes on
	asked  time.Time  // when the client has sent bytes last
	waits  bool       // the server has sent none since
	cut    bool
}

// toServer forwards requests.
func (c *connection) toServer(server net.Conn) {
	defer server.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.client.Read(buffer)
		if err != nil {
			return
		}
		c.mutex.Lock()
		c.asked, c.waits = time.Now(), true
		if !c.cut {
			_, err = server.Write(buffer[:n])
		}
		cut := c.cut
		c.mutex.Unlock()
		if cut || err != nil {
			return
		}
	}
}

// toClient forwards answers.
func (c *connection) toClient(server net.Conn) {
	defer c.client.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		c.mutex.Lock()
		c.waits = false
		c.mutex.Unlock()
		if _, err := c.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cutIfAnswered closes the connection of a watch. It spares a request that the
// server may be working on: the client would send it again, and the server would
// work on both at once.
func (c *connection) cutIfAnswered() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.waits && time.Since(c.asked) > time.Second {
		c.cut = true
		c.client.Close()
	}
}

// forwarder copies bytes between clients and the server.
type forwarder struct {
	to    string
	mutex sync.Mutex               // guards open
	open  map[*connection]struct{} // those there are now
}

func (f *forwarder) forward(client net.Conn) {
	server, err := net.Dial("tcp", f.to)
	if err != nil {
		client.Close()
		return
	}
	c := &connection{client: client, asked: time.Now()}
	f.mutex.Lock()
	f.open[c] = struct{}{}
	f.mutex.Unlock()
	go c.toServer(server)
	c.toClient(server)
	f.mutex.Lock()
	delete(f.open, c)
	f.mutex.Unlock()
}

func (f *forwarder) cut() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for c := range f.open {
		c.cutIfAnswered()
	}
}

func main() {
	etcd := flag.String("etcd", "http://127.0.0.1:2379", "the URL of etcd")
	listen := flag.String("listen", "127.0.0.1:6443", "where to serve")
	directory := flag.String("directory", ".", "where to write token and ca.crt")
	flag.Parse()

	f := &forwarder{to: start(*etcd, *directory), open: map[*connection]struct{}{}}
	socket, err := net.Listen("tcp", *listen)
	must(err)
	cuts := make(chan os.Signal, 1)
	signal.Notify(cuts, syscall.SIGUSR1)
	go func() {
		for range cuts {
			f.cut()
		}
	}()
	fmt.Println("ready")
	for {
		client, err := socket.Accept()
		must(err)
		go f.forward(client)
	}
}
