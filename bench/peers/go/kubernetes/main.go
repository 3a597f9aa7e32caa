// SPDX-License-Identifier: MIT

// The controller of examples/kubernetes, as a Go programmer writes it: a dynamic
// informer, its lister, and a rate limiting workqueue of client-go.
//
//	widgets_go --server URL --ca-file FILE --token-file FILE [--workers N]
//	           [--port N] [--resync DURATION]
//
// It sets status.size of every Widget to its spec.size. Its settings are those
// of the C controller: the same number of workers, the same delays, no limit on
// the rate of requests (client-go's default is 5 a second). managedFields are
// removed from the cache, as there. /metrics has the counter
// widgets_reconciles_total.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var widgets = schema.GroupVersionResource{
	Group: "wq.example.com", Version: "v1", Resource: "widgets"}

type controller struct {
	client     dynamic.Interface
	lister     cache.GenericLister
	queue      workqueue.TypedRateLimitingInterface[string]
	reconciles atomic.Int64
}

// strip removes what only servers need from an object for the cache.
func strip(object any) (any, error) {
	if widget, ok := object.(*unstructured.Unstructured); ok {
		widget.SetManagedFields(nil)
	}
	return object, nil
}

// enqueue adds the key of an object of an event.
func (c *controller) enqueue(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err == nil {
		c.queue.Add(key)
	}
}

// reconcile makes status.size what spec.size is.
func (c *controller) reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil
	}
	object, err := c.lister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	widget := object.(*unstructured.Unstructured)
	want, found, err := unstructured.NestedInt64(widget.Object, "spec", "size")
	if err != nil || !found {
		return nil
	}
	have, found, err := unstructured.NestedInt64(widget.Object, "status", "size")
	if err == nil && found && have == want {
		return nil
	}
	widget = widget.DeepCopy()
	if err := unstructured.SetNestedField(widget.Object, want, "status", "size"); err != nil {
		return err
	}
	_, err = c.client.Resource(widgets).Namespace(namespace).
		UpdateStatus(ctx, widget, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// work is the loop of a worker.
func (c *controller) work(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.reconciles.Add(1)
		if err := c.reconcile(ctx, key); err == nil {
			c.queue.Forget(key)
		} else {
			if !apierrors.IsConflict(err) && c.queue.NumRequeues(key) == 0 {
				log.Printf("%s: %v", key, err)
			}
			c.queue.AddRateLimited(key)
		}
		c.queue.Done(key)
	}
}

func (c *controller) serve(port int) {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "widgets_reconciles_total %d\n", c.reconciles.Load())
	})
	err := http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), nil)
	if !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

func main() {
	server := flag.String("server", "", "https://host:port of the API server")
	ca := flag.String("ca-file", "", "authority of its certificate")
	token := flag.String("token-file", "", "bearer token")
	workers := flag.Int("workers", 4, "goroutines that reconcile")
	port := flag.Int("port", 8080, "of /metrics and /healthz")
	resync := flag.Duration("resync", 10*time.Minute, "how often all are checked")
	flag.Parse()

	config := &rest.Config{Host: *server, BearerTokenFile: *token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: *ca}, QPS: -1}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, *resync)
	informer := factory.ForResource(widgets)
	c := &controller{
		client: client,
		lister: informer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](
				200*time.Millisecond, 30*time.Second)),
	}
	if err := informer.Informer().SetTransform(strip); err != nil {
		log.Fatal(err)
	}
	if _, err := informer.Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{
			AddFunc:    c.enqueue,
			UpdateFunc: func(_, object any) { c.enqueue(object) },
			DeleteFunc: c.enqueue,
		}); err != nil {
		log.Fatal(err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM,
		syscall.SIGINT)
	defer stop()
	go c.serve(*port)
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced)
	var group sync.WaitGroup
	for range *workers {
		group.Go(func() { c.work(context.Background()) })
	}
	<-ctx.Done()
	stop()
	c.queue.ShutDownWithDrain()
	group.Wait()
}
