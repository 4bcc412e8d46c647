"""The compose file and the KubeRay manifest: every image, port, variable, secret, volume and command fits the others
and katha. No container is begun here."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.main import get_command

from katha.addresses import store_address
from katha.app.cli.main import app

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose.yaml"
KUBERAY = ROOT / "deploy" / "kuberay.yaml"
PAGES = tuple(ROOT / "docs" / f"{name}.md" for name in ("cluster", "size-a-job", "shared-store"))
KNOWN = {"KATHA_STORE", "KATHA_OBJECTS", "PGPASSWORD", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"} | {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
}
"""What katha, libpq and botocore read; a slip in a name would be read by nobody."""
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def services() -> Tree:
    found: Tree = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return found


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], Tree]:
    """The manifest's objects by kind and name."""
    rows = list(yaml.safe_load_all(KUBERAY.read_text(encoding="utf-8")))
    found = {(row["kind"], row["metadata"]["name"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def pinned(image: str) -> bool:
    name, _, tag = image.rpartition(":")
    return bool(name) and tag not in ("", "latest")


def check_store(variables: dict[str, str], hosts: dict[str, int], bucket: str) -> None:
    """Both places are ones that katha takes, at hosts that are there."""
    address = store_address(variables)
    for url in (address.index, variables["AWS_ENDPOINT_URL"]):
        parts = urlsplit(url)
        assert hosts[str(parts.hostname)] == parts.port
    assert urlsplit(address.objects).hostname == bucket


def commands(text: str) -> list[list[str]]:
    """The words after `katha` of every command that a text names with these files."""
    return [line.split() for line in re.findall(r"(?:--rm|--) katha ([^\n`]+)", text)]


def options(verb: str) -> set[str]:
    command: Any = get_command(app).commands[verb]  # type: ignore[attr-defined]
    return {option for item in command.params for option in item.opts}


def test_compose_s_services_fit_each_other(services: Tree) -> None:
    assert set(services) == {"katha", "database", "objects"}
    assert all(pinned(service["image"]) for service in services.values())
    katha, database, store = services["katha"], services["database"], services["objects"]
    ports = {name: int(services[name]["ports"][0].rpartition(":")[2]) for name in ("database", "objects")}
    bucket = re.search(r"mkdir -p /data/(\w+)", store["entrypoint"][-1])
    assert bucket is not None
    assert set(katha["environment"]) == KNOWN
    check_store(katha["environment"], ports, bucket[1])
    assert f":{ports['objects']}" in store["entrypoint"][-1]
    index = urlsplit(katha["environment"]["KATHA_STORE"])
    assert (index.username, index.path[1:]) == (
        database["environment"]["POSTGRES_USER"],
        database["environment"]["POSTGRES_DB"],
    )
    assert katha["environment"]["AWS_ACCESS_KEY_ID"] == store["environment"]["MINIO_ROOT_USER"]
    told = {re.sub(r":\?[^}]*", "", services[name]["environment"][key]) for name, key in (
        ("katha", "PGPASSWORD"), ("katha", "AWS_SECRET_ACCESS_KEY"),
        ("database", "POSTGRES_PASSWORD"), ("objects", "MINIO_ROOT_PASSWORD"),
    )}  # fmt: skip
    assert told == {"${KATHA_PASSWORD}"}
    assert set(katha["depends_on"]) == {name for name, service in services.items() if "healthcheck" in service}
    named = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in named if name.isalpha()} == set(yaml.safe_load(COMPOSE.read_text())["volumes"])


def test_the_compose_file_keeps_the_compose_specification(services: Tree) -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # Compose reads a relative path from where its file is: stories lie where the command is given.
    assert services["katha"]["volumes"][0] == "${KATHA_FOLDER:-${PWD:-.}}:/stories"


def test_the_images_are_those_of_the_docker_files(services: Tree) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert services["katha"]["build"]["args"]["EXTRAS"] in extras
    assert (COMPOSE.parent / services["katha"]["build"]["context"] / "Dockerfile").is_file()
    for name in ("Dockerfile", "Dockerfile.cuda"):
        assert re.search(r"^ARG EXTRAS=.*\nRUN pip install .*EXTRAS", (ROOT / name).read_text(), flags=re.M)
    built = re.search(r"--build-arg EXTRAS=(\S+)", KUBERAY.read_text())
    assert built is not None
    assert set(built[1].split(",")) <= set(extras)


def test_the_commands_are_katha_s(services: Tree) -> None:
    verbs: Any = get_command(app).commands  # type: ignore[attr-defined]
    assert services["katha"]["command"][1] in verbs[services["katha"]["command"][0]].commands
    found = [words for path in (COMPOSE, KUBERAY, *PAGES) for words in commands(path.read_text())]
    assert len(found) >= 4
    for words in found:
        assert {word for word in words if word.startswith("--")} <= options(words[0]), words


def test_the_manifest_s_objects_fit_each_other(objects: dict[tuple[str, str], Tree]) -> None:
    variables = objects["ConfigMap", "katha"]["data"] | objects["Secret", "katha"]["stringData"]
    assert set(variables) == KNOWN
    hosts = {}
    for (kind, name), row in objects.items():
        if kind == "Service":
            pod = objects["StatefulSet", name]["spec"]["template"]
            assert row["spec"]["selector"] == pod["metadata"]["labels"]
            (port,) = row["spec"]["ports"]
            hosts[name] = port["port"]
            assert port["targetPort"] == pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    check_store(variables, hosts, "katha")
    assert "/data/katha" in str(objects["StatefulSet", "katha-objects"])
    for wanted in re.findall(r"secretKeyRef: {name: katha, key: (\w+)}", KUBERAY.read_text()):
        assert wanted in objects["Secret", "katha"]["stringData"]


def test_the_cluster_s_pods_are_whole(objects: dict[tuple[str, str], Tree]) -> None:
    spec = objects["RayCluster", "katha"]["spec"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"ray[client]>={spec['rayVersion'].rpartition('.')[0]}" in extras["cluster"]
    pods = [spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"])]
    sets = [row["spec"]["template"] for (kind, _), row in objects.items() if kind == "StatefulSet"]
    for pod in (*pods, *sets):
        (container,) = pod["spec"]["containers"]
        assert pinned(container["image"])
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", ())} | ({"data"} if pod in sets else set())
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    for pod in pods:
        sources = [next(iter(source.values()))["name"] for source in pod["spec"]["containers"][0]["envFrom"]]
        assert sources == ["katha", "katha"]
        claims = [item["persistentVolumeClaim"] for item in pod["spec"]["volumes"] if "persistentVolumeClaim" in item]
        assert all(("PersistentVolumeClaim", claim["claimName"]) in objects for claim in claims)
        container = pod["spec"]["containers"][0]
        for probe in ("livenessProbe", "readinessProbe"):  # without, the operator gives it some that need wget
            assert container[probe].keys() & {"exec", "tcpSocket"}
            assert "wget" not in str(container[probe])
    for group in spec["workerGroupSpecs"]:
        limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert limits["nvidia.com/gpu"] == group["rayStartParams"]["num-gpus"]
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
