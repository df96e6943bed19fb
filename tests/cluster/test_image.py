"""Images that are made without an image builder."""

from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.image import product_image


def test_equal_trees_make_equal_images(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first = product_image(tmp_path, "test.local/dra-driver:1")
    second = product_image(tmp_path / "again", "test.local/dra-driver:1")
    assert first.read_bytes() == second.read_bytes()


def test_the_product_runs_from_its_image(cluster: Cluster, tmp_path: Path) -> None:
    image = "test.local/dra-driver:smoke"
    cluster.nodes["node-a"].import_image(product_image(tmp_path, image))
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "args": ["--help"]}
    cluster.apply({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "product"},
        "spec": {"nodeName": "node-a", "restartPolicy": "Never", "containers": [container]},
    })  # fmt: skip
    cluster.wait_for_phase("product", "Succeeded")
    assert "--simulated-profile" in cluster.pod_logs("product")
    cluster.delete("pod", "product")
