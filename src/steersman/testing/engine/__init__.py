"""The real engine: kube-apiserver, etcd and kube-controller-manager as local processes, or a cluster that already runs."""
