"""What pods ask of their cluster: users, addresses, disks, places and images."""

import re

import pytest
import yaml

from rendering import (
    FILES,
    SETS,
    containers,
    only,
    pod_of,
    pod_parent,
    render,
    rendered,
    title,
    variables,
    workloads,
)

OPENSHIFT = yaml.safe_load(FILES["openshift"].read_text())
# A name that every registry's client completes to the same image.
WHOLE_IMAGE = re.compile(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9._/-]+:v?[0-9][0-9.]*")

every_set = pytest.mark.parametrize("name", SETS)


def limits(container):
    """Returns the limits of a resolver; none for other containers."""
    entries = variables(container).get("RESOLVER_LIMIT", "").split(",")
    return dict(entry.split("=") for entry in entries if entry)


@every_set
def test_openshift_may_choose_users_and_groups(name):
    for found in workloads(render(name, OPENSHIFT)):
        for context in (
            pod_of(found)["securityContext"],
            *(each["securityContext"] for each in containers(found)),
        ):
            assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys(), title(found)
        assert pod_of(found)["securityContext"]["runAsNonRoot"], title(found)
        # Written as any user: nothing is outside of a volume, whose group Kubernetes sets.
        assert all(each["securityContext"]["readOnlyRootFilesystem"] for each in containers(found))


@every_set
def test_security_contexts_may_be_left_to_the_cluster(name):
    for found in workloads(render(name, {"podSecurityContext": None, "securityContext": None})):
        assert "securityContext" not in pod_of(found)
        assert not any("securityContext" in each for each in containers(found))


@every_set
def test_on_a_cluster_with_ipv6_alone_all_servers_listen(name):
    more = {"listenAddress": "[::]", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}
    objects = render(name, more)
    for found in workloads(objects):
        for container in containers(found):
            for variable, value in variables(container).items():
                if "LISTEN" in variable:
                    assert "[::]:" in value, f"{title(found)}: {variable}={value}"
    services = [each["spec"] for each in objects if each["kind"] == "Service"]
    assert all((each["ipFamilyPolicy"], each["ipFamilies"]) == ("SingleStack", ["IPv6"]) for each in services)


def test_by_default_services_have_the_families_of_their_cluster():
    services = [each["spec"] for each in rendered("small") if each["kind"] == "Service"]
    assert {each["ipFamilyPolicy"] for each in services} == {"PreferDualStack"}
    assert not any("ipFamilies" in each for each in services)


@every_set
def test_a_full_spool_fits_into_what_its_pod_requests(name):
    for found in workloads(rendered(name)):
        for container in containers(found):
            spool = limits(container).get("visits-spool-mib")
            if spool:
                claims = found["spec"].get("volumeClaimTemplates")
                disk = container["resources"]["requests"]["ephemeral-storage"]
                size = claims[0]["spec"]["resources"]["requests"]["storage"] if claims else disk
                assert int(size.removesuffix("Mi")) > int(spool), title(found)


@every_set
def test_a_pod_has_more_time_than_the_limits_of_its_end(name):
    for found in workloads(rendered(name)):
        drain = variables(containers(found)[0]).get("RESOLVER_DRAIN_DELAY")
        if drain:
            # Requests, creates, visits and numbers have ten seconds each (resolver/ARCHITECTURE.md).
            longest = int(drain.removesuffix("s")) + 4 * 10
            assert pod_of(found)["terminationGracePeriodSeconds"] >= longest + 10, title(found)


def test_the_spool_may_outlive_its_pod():
    objects = render(
        "base", {"resolver": {"spoolVolume": {"enabled": True}, "autoscaling": {"maxReplicas": 2}}}
    )
    resolver = only(objects, "StatefulSet", "resolver")
    assert not any("emptyDir" in each for each in pod_of(resolver)["volumes"])
    assert resolver["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    autoscaled = render("production", {"resolver": {"spoolVolume": {"enabled": True}}})
    assert (
        only(autoscaled, "HorizontalPodAutoscaler", "resolver")["spec"]["scaleTargetRef"]["kind"]
        == "StatefulSet"
    )


@pytest.mark.parametrize("name", ["small", "production", "split", "base"])
def test_spread_leaves_out_nodes_that_the_pods_cannot_run_on(name):
    for found in workloads(rendered(name)):
        for each in pod_of(found).get("topologySpreadConstraints", []):
            assert (each["nodeTaintsPolicy"], each["nodeAffinityPolicy"]) == ("Honor", "Honor"), title(found)
            labels = pod_parent(found)["template"]["metadata"]["labels"]
            assert each["labelSelector"]["matchLabels"].items() <= labels.items()
            assert ("matchLabelKeys" in each) == (found["kind"] == "Deployment")


def test_a_lost_node_is_not_tolerated_by_what_is_spread():
    # The node of a lost kubelet has this taint with NoSchedule too. A pod that tolerated that would have the
    # node counted, and DoNotSchedule would wait for it.
    for found in workloads(rendered("production")):
        for each in pod_of(found).get("tolerations", []):
            assert each["effect"] == "NoExecute", title(found)


def test_a_workload_may_have_constraints_of_its_own_or_none():
    own = [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    objects = render(
        "base", {"issuer": {"topologySpreadConstraints": own}, "resolver": {"topologySpreadConstraints": []}}
    )
    [issuer] = pod_of(only(objects, "StatefulSet", "issuer"))["topologySpreadConstraints"]
    assert issuer["topologyKey"] == "rack" and issuer["labelSelector"]
    assert (issuer["nodeTaintsPolicy"], issuer["nodeAffinityPolicy"]) == ("Honor", "Honor")
    [issuer] = pod_of(only(rendered("all"), "StatefulSet", "eu-issuer"))["topologySpreadConstraints"]
    assert issuer["nodeTaintsPolicy"] == "Ignore"
    assert "topologySpreadConstraints" not in pod_of(only(objects, "Deployment", "resolver"))


@every_set
def test_pods_are_scraped_by_a_monitor_or_by_annotations_but_not_by_both(name):
    has_monitor = any(each["kind"] in ("PodMonitor", "ServiceMonitor") for each in rendered(name))
    for found in workloads(rendered(name)):
        metadata = pod_parent(found)["template"]["metadata"]
        if metadata["labels"]["app.kubernetes.io/component"] in ("issuer", "resolver", "redirect"):
            is_annotated = "prometheus.io/scrape" in metadata.get("annotations", {})
            assert is_annotated != has_monitor, title(found)


def test_images_of_others_have_a_registry_and_a_version():
    images = {each["image"] for found in workloads(rendered("small")) for each in containers(found)}
    others = {image for image in images if "shortmint" not in image}
    assert len(others) == 2
    assert all(WHOLE_IMAGE.fullmatch(image) for image in others), others


def test_labels_and_annotations_are_added_to_every_object_and_pod():
    for each in rendered("all"):
        if not each["metadata"]["name"].endswith(("geoip", "more")):
            assert each["metadata"]["labels"]["example.com/owner"] == "links", title(each)
            assert each["metadata"]["annotations"]["example.com/page"], title(each)
    for found in workloads(rendered("all")):
        assert pod_parent(found)["template"]["metadata"]["labels"]["example.com/owner"] == "links"


def test_redirects_have_the_settings_of_resolvers_but_not_their_environment_and_service():
    objects = rendered("all")
    redirect, resolver = only(objects, "Deployment", "eu-redirect"), only(
        objects, "StatefulSet", "eu-resolver"
    )
    assert containers(redirect)[0]["resources"]["limits"]["memory"] == "512Mi"
    assert pod_of(redirect)["tolerations"] == pod_of(resolver)["tolerations"]
    assert "RESOLVER_READ_DATABASE" in variables(containers(resolver)[0])
    assert "RESOLVER_READ_DATABASE" not in variables(containers(redirect)[0])
    more = {"resolver": {"service": {"type": "LoadBalancer", "annotations": {"example.com/address": "api"}}}}
    service = only(render("split", more), "Service", "redirect")
    assert service["spec"]["type"] == "ClusterIP" and "annotations" not in service["metadata"]
    # A value that is removed is not one of the resolvers' either.
    redirect = only(render("all", {"redirect": {"extraEnv": None}}), "Deployment", "eu-redirect")
    assert "RESOLVER_READ_DATABASE" not in variables(containers(redirect)[0])


@pytest.mark.parametrize("name", ["small", "base"])
def test_by_default_pods_need_no_more_connections_than_postgres_has(name):
    resolver = only(rendered(name), "Deployment", "resolver")
    each = int(limits(containers(resolver)[0])["database-connections"])
    # One surges while one before it drains; two are the migration's, and three are reserved for superusers.
    assert (resolver["spec"]["replicas"] + 2) * each + 2 + 3 <= 100
