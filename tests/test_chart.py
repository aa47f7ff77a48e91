"""The Helm chart: what Helm renders fits the schemas of Kubernetes and is closed as compose.yaml is; nothing runs."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from client.command import main
from client.deploy.settings import SIDES, HospitalSettings
from client.deploy.start import hospital_children
from client.flower.proxy import login
from common.system.enrolment import PartyFile, RosterFile
from common.system.files import check_records, check_secret
from tests.support.enrolment import PARTY, invitation
from tests.support.helm import CHART, HelmError, lint, rendered
from tests.support.requirements import PROJECT

pytest.importorskip("helm_python", reason="its wheels are for few machines")

COMPOSE = yaml.safe_load((CHART.parent / "compose.yaml").read_text())["services"]
VERSIONS = ("1.27", "1.37")
"""The oldest that the chart takes, and the newest that the schemas know."""

SETTINGS = """\
# caucus-party check h
name: "St. Mary"
records: /home/me/notes.csv  # read by the party service alone
encoder: hashed_ngrams
coordinator: "coordinator.example:9443"  # outbound connections go here
bundle: abababababababababababababababababababababababababababababababab
relay_user: null
limits:
  max_epsilon: .inf
"""
COORDINATOR = {"coordinator": {"enabled": True, "address": "coordinator.example", "keys": "models"}}
HOSPITAL = {
    "hospital": {
        "enabled": True,
        "settings": SETTINGS,
        "roster": "{}",
        "identity": "identity",
        "node": "node",
        "records": {"claim": "records"},
    }
}
SIDE = {"coordinator": COORDINATOR, "hospital": HOSPITAL, "both": COORDINATOR | HOSPITAL}


def manifests_of(values, part=""):
    """All manifests with these values, or those of one part."""
    texts = [text for name, text in rendered(values).items() if part in {"", name.removesuffix(".yaml")}]
    return [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]


@pytest.fixture(scope="module")
def manifests():
    """All manifests of each choice of sides."""
    return {name: manifests_of(values) for name, values in SIDE.items()}


@pytest.fixture(scope="module")
def pods(manifests):
    """Each pod's labels and contents, by its part."""
    sets = [document for document in manifests["both"] if document["kind"] == "StatefulSet"]
    return {document["metadata"]["name"].removeprefix("mary-"): document["spec"]["template"] for document in sets}


def changed(**values):
    return {"hospital": HOSPITAL["hospital"] | values}


def policy(manifests, name):
    (spec,) = [
        manifest["spec"]
        for manifest in manifests["both"]
        if (manifest["kind"], manifest["metadata"]["name"]) == ("NetworkPolicy", f"mary-{name}")
    ]
    return spec


@pytest.mark.parametrize("side", SIDE)
def test_helm_finds_nothing_to_complain_of(side):
    assert lint(SIDE[side]) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("side", SIDE)
def test_each_manifest_fits_the_schema_of_kubernetes(manifests, side, version):
    import kubernetes_validate

    for manifest in manifests[side]:
        kubernetes_validate.validate(manifest, version, strict=True)
    kinds = sorted(document["kind"] for document in manifests[side] if document["kind"] != "ConfigMap")
    coordinator, hospital = ["NetworkPolicy", "Service", "StatefulSet"], ["NetworkPolicy", "PersistentVolumeClaim"]
    halves = [*hospital, "NetworkPolicy", "StatefulSet", "StatefulSet"]
    assert kinds == sorted({"coordinator": coordinator, "hospital": halves, "both": coordinator + halves}[side])


def test_a_schema_that_a_manifest_does_not_fit_says_so(manifests):
    import kubernetes_validate

    (policy, *_) = [document for document in manifests["both"] if document["kind"] == "NetworkPolicy"]
    wrong = policy | {"spec": policy["spec"] | {"egres": []}}
    with pytest.raises(kubernetes_validate.ValidationError, match="egres"):
        kubernetes_validate.validate(wrong, VERSIONS[1], strict=True)


def test_without_a_side_there_is_nothing():
    assert manifests_of({}) == []


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"coordinator": {"enabled": True}}, "coordinator.address:"),
        (changed(settings=""), "hospital.settings: expected client.yaml, by --set-file; got none"),
        (changed(settings="name: A\n"), "hospital.settings: expected a line with coordinator: host:port; got none"),
        (changed(roster=""), "hospital.roster: expected roster.json"),
        (changed(identity=""), "hospital.identity: expected a Secret with identity.key"),
        (changed(node=""), "hospital.node: expected a Secret with node.key"),
        (changed(records={"file": "a.csv"}), "hospital.records.claim: expected a PersistentVolumeClaim"),
        (changed(records={"claim": "r", "file": "../a.csv"}), "records/file"),
        (changed(storage="2"), "storage"),
        (changed(memory={"relais": "2Gi"}), "relais"),
    ],
)
def test_a_value_that_is_missing_or_wrong_is_named(values, line):
    with pytest.raises(HelmError, match=re.escape(line)):
        rendered(values)


def test_each_pod_is_closed_as_the_restricted_standard_of_kubernetes_demands(pods):
    assert set(pods) == {"coordinator", "service", "relay"}
    for template in pods.values():
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        kinds = {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
        assert all(kinds & set(volume) for volume in pod["volumes"])
        for container in pod["initContainers"] + pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


@pytest.mark.parametrize(
    ("part", "service"),
    [("coordinator", "coordinator"), ("service", "hospital0-service"), ("relay", "hospital0-relay")],
)
def test_users_commands_memory_and_health_checks_are_those_of_compose(pods, part, service):
    compose, (container,) = COMPOSE[service], pods[part]["spec"]["containers"]
    context = pods[part]["spec"]["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == compose["user"]
    assert context["fsGroup"] == context["runAsGroup"]
    assert container["resources"]["limits"]["memory"] == compose["mem_limit"].upper() + "i"
    folder = "/data/coordinator" if part == "coordinator" else "/hospital"
    assert container["image"].partition(":")[0] == compose["image"]
    assert container["command"] == [*compose["command"][:2], folder, *compose["command"][3:]]
    check = [folder if word == f"/{part}" else word for word in compose["healthcheck"]["test"][1:]]
    probes = {name: container[name]["exec"]["command"] for name in container if name.endswith("Probe")}
    assert probes == dict.fromkeys(("startupProbe", "readinessProbe", "livenessProbe"), check)
    assert importlib.util.find_spec(check[2])


def test_what_holds_records_has_no_network_and_what_has_a_network_holds_none(manifests, pods):
    nothing, both = {"ingress": [], "egress": []}, ["Ingress", "Egress"]
    for part, template in pods.items():
        rules = policy(manifests, part)
        assert rules.pop("policyTypes") == both
        assert rules.pop("podSelector")["matchLabels"] == template["metadata"]["labels"]
        ports = [rule["port"] for rule_of_way in rules["egress"] + rules["ingress"] for rule in rule_of_way["ports"]]
        assert ports == {"coordinator": [53, 53, 443, 9443], "service": [], "relay": [53, 53, 9443]}[part]
        if part != "coordinator":
            assert rules["ingress"] == []
        if part == "service":
            assert rules == nothing


def test_the_halves_share_a_socket_and_nothing_else(pods):
    claims = {
        part: {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pods[part]["spec"]["volumes"]
            if "persistentVolumeClaim" in volume
        }
        for part in ("service", "relay")
    }
    assert claims == {"service": {"mary-socket", "records"}, "relay": {"mary-socket"}}
    for part in claims:
        (container,) = pods[part]["spec"]["containers"]
        assert {"name": "socket", "mountPath": "/hospital/run"} in container["volumeMounts"]
    near = pods["relay"]["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [affinity["labelSelector"]["matchLabels"] for affinity in near] == [pods["service"]["metadata"]["labels"]]
    assert {affinity["topologyKey"] for affinity in near} == {"kubernetes.io/hostname"}


def test_a_coordinator_without_keys_of_models_connects_to_nothing():
    *_, rules = manifests_of({"coordinator": {"enabled": True, "address": "coordinator.example"}}, "coordinator")
    assert rules["spec"]["egress"] == []


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == PROJECT["version"]


@pytest.fixture
def given(tmp_path, capsys):
    """What an operator has before: the folder that `init` made, with the roster; and the records."""
    invited = invitation(tmp_path, "localhost:9443", "ab" * 32)
    records = tmp_path / "notes.csv"
    records.write_text("text,label\none,a\n")
    records.chmod(0o600)
    folder = tmp_path / "h"
    words = ("--name", "St. Mary", "--records", records, "--invitation", invited)
    assert main(["init", str(folder), *map(str, words)]) == 0
    roster = RosterFile(parties=(PartyFile(**PARTY | {"name": "St. Luke"}), PartyFile.load(folder / "party.json")))
    (folder / "roster.json").write_text(roster.to_json())
    return folder


def prepared(part, values, root, secrets):
    """Run the script of a pod's first container, with its volumes below a folder of this machine."""
    of_kind = {manifest["kind"]: manifest for manifest in manifests_of(values, part)}
    (container,) = of_kind["StatefulSet"]["spec"]["template"]["spec"]["initContainers"]
    for mount in container["volumeMounts"]:
        Path(f"{root}{mount['mountPath']}").mkdir(parents=True, exist_ok=True)
    for name, content in of_kind["ConfigMap"]["data"].items():
        (root / "given" / "settings" / name).write_text(content)
    for path, content in secrets.items():
        (root / "given" / path).write_bytes(content)
    _, options, script, *arguments = container["command"]
    here = re.sub(r"(?<![\w/])/(hospital|given|records)\b", rf"{root}/\1", script)
    for _ in range(2):  # a pod starts more than once
        subprocess.run(["sh", options, here, *arguments], check=True)
    return HospitalSettings.load(root / "hospital")


def test_both_halves_are_put_together_from_what_init_makes(given, tmp_path):
    settings, roster = (given / "client.yaml").read_text(), (given / "roster.json").read_text()
    values = changed(settings=settings, roster=roster)
    records = b"text,label\none,a\n"
    identity = {
        "identity/identity.key": (given / "private" / "identity.key").read_bytes(),
        "records/notes.csv": records,
    }
    ledger = tmp_path / "service" / "hospital" / "private" / "ledger.db"
    ledger.parent.mkdir(parents=True)
    ledger.touch(mode=0o660)  # as a volume that was restored
    service = prepared("service", values, tmp_path / "service", identity)
    assert service.number(service.roster()) == 1
    assert (str(service.records), service.relay_user) == ("/records/notes.csv", "relay")
    check_records(tmp_path / "service" / "records" / "notes.csv")
    check_secret(ledger)

    node = {f"node/{name}": (given / "node" / name).read_bytes() for name in ("node.key", "superexec.secret", "ca.crt")}
    relay = prepared("relay", values, tmp_path / "relay", node)
    for name in node:
        check_secret(relay.folder / name)
    started = hospital_children(relay, SIDES["relay"])
    assert (relay.coordinator, relay.bundle) == ("localhost:9443", "ab" * 32)
    assert [child.name for child in started] == ["supernode", "relay"]
    assert set(yaml.safe_load((relay.folder / "client.yaml").read_text())) == {
        *("name", "records", "encoder", "coordinator", "proxy", "bundle")
    }


def test_the_relay_behind_a_proxy_has_its_login_and_connects_to_it_alone(given, tmp_path):
    settings = (given / "client.yaml").read_text().replace("proxy: null", "proxy: http://proxy.hospital:3128/")
    node = {f"node/{name}": (given / "node" / name).read_bytes() for name in ("node.key", "superexec.secret", "ca.crt")}
    values = changed(settings=settings)
    relay = prepared("relay", values, tmp_path / "relay", node | {"node/proxy.login": b"user:password\n"})
    assert relay.proxy == "http://proxy.hospital:3128/"
    assert login(relay.node) == ("user", "password")
    (policy,) = (each["spec"] for each in manifests_of(values, "relay") if each["kind"] == "NetworkPolicy")
    assert sorted(port["port"] for rule in policy["egress"] for port in rule["ports"]) == [53, 53, 3128]
