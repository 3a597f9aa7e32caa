// SPDX-License-Identifier: MIT

// Where do client-go's metrics go? To Prometheus' client library, as in
// Kubernetes: one vector per metric, whose label is the name of the queue,
// looked up once when the queue is created.
package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// provider keeps one registry, as a program does.
type provider struct {
	registry *prometheus.Registry
}

func (p provider) gauge(name, metric string) prometheus.Gauge {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Subsystem: "workqueue", Name: metric, Help: metric}, []string{"name"})
	p.registry.MustRegister(v)
	return v.WithLabelValues(name)
}

func (p provider) counter(name, metric string) prometheus.Counter {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: "workqueue", Name: metric, Help: metric}, []string{"name"})
	p.registry.MustRegister(v)
	return v.WithLabelValues(name)
}

func (p provider) histogram(name, metric string) prometheus.Observer {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: "workqueue", Name: metric, Help: metric,
		Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
	}, []string{"name"})
	p.registry.MustRegister(v)
	return v.WithLabelValues(name)
}

func (p provider) NewDepthMetric(name string) workqueue.GaugeMetric {
	return p.gauge(name, "depth")
}

func (p provider) NewAddsMetric(name string) workqueue.CounterMetric {
	return p.counter(name, "adds_total")
}

func (p provider) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return p.histogram(name, "queue_duration_seconds")
}

func (p provider) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return p.histogram(name, "work_duration_seconds")
}

func (p provider) NewUnfinishedWorkSecondsMetric(
	name string) workqueue.SettableGaugeMetric {
	return p.gauge(name, "unfinished_work_seconds")
}

func (p provider) NewLongestRunningProcessorSecondsMetric(
	name string) workqueue.SettableGaugeMetric {
	return p.gauge(name, "longest_running_processor_seconds")
}

func (p provider) NewRetriesMetric(name string) workqueue.CounterMetric {
	return p.counter(name, "retries_total")
}
