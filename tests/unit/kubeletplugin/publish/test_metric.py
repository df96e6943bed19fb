from prometheus_client import CollectorRegistry, generate_latest

from kubeletplugin.publish.metric import PublishMetrics


def test_every_series_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    PublishMetrics(registry)
    text = generate_latest(registry).decode()
    for line in (
        'dra_kubeletplugin_publish_total{result="success"} 0.0',
        'dra_kubeletplugin_publish_total{result="error"} 0.0',
        'dra_kubeletplugin_publish_duration_seconds_count{result="success"} 0.0',
        'dra_kubeletplugin_publish_duration_seconds_count{result="error"} 0.0',
        "dra_kubeletplugin_published_devices 0.0",
        "dra_kubeletplugin_left_out_devices 0.0",
        "dra_kubeletplugin_published_slices 0.0",
        "dra_kubeletplugin_pool_generation 0.0",
        "dra_kubeletplugin_dropped_fields 0.0",
        "dra_kubeletplugin_last_publish_timestamp_seconds 0.0",
        "dra_kubeletplugin_first_publish_seconds 0.0",
    ):
        assert line in text
