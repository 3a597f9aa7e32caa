// SPDX-License-Identifier: MIT

// Which versions were measured? Printed as "name value", as they were linked.
package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func printVersions() {
	fmt.Println("go", runtime.Version())
	info, ok := debug.ReadBuildInfo()
	must(ok, "ReadBuildInfo")
	for _, m := range info.Deps {
		switch m.Path {
		case "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
			"github.com/prometheus/client_golang":
			fmt.Println(m.Path, m.Version)
		}
	}
}
