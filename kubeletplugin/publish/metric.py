"""Metrics of publishing, with zero series from the start."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_RESULTS = ("success", "error")
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class PublishMetrics:
    """What is counted of publishing, in a registry that the caller serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix = "dra_kubeletplugin_"
        self.publishes = Counter(
            f"{prefix}publish_total",
            "Attempts to bring the stored ResourceSlices up to date.",
            ["result"],
            registry=registry,
        )
        self.duration_seconds = Histogram(
            f"{prefix}publish_duration_seconds",
            "Duration of an attempt to bring the stored ResourceSlices up to date.",
            ["result"],
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self.devices = Gauge(
            f"{prefix}published_devices", "Devices and partitions in the published slices.", registry=registry
        )
        self.left_out_devices = Gauge(
            f"{prefix}left_out_devices", "Devices and partitions that could not be published.", registry=registry
        )
        self.slices = Gauge(f"{prefix}published_slices", "ResourceSlices of this node's pool.", registry=registry)
        self.generation = Gauge(f"{prefix}pool_generation", "Generation of this node's pool.", registry=registry)
        self.dropped_fields = Gauge(
            f"{prefix}dropped_fields", "Kinds of fields that the API server does not keep.", registry=registry
        )
        self.last_timestamp_seconds = Gauge(
            f"{prefix}last_publish_timestamp_seconds",
            "Unix time at which the stored slices were last known to be up to date.",
            registry=registry,
        )
        self.first_seconds = Gauge(
            f"{prefix}first_publish_seconds",
            "Seconds from the start of publishing to the first complete pool, 0 until then.",
            registry=registry,
        )
        for result in _RESULTS:
            self.publishes.labels(result)
            self.duration_seconds.labels(result)
