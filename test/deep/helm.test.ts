import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import packageJson from "../../package.json" with { type: "json" };
import { type Manifest, parseManifests, readManifests, validateManifest } from "../support/manifests.ts";

const run = promisify(execFile);
const CONFIG = join(import.meta.dirname, "../../config");
const CHART = join(CONFIG, "helm");
/** Path of Helm, or `undefined` when it is not on the PATH. `.ci/tools` installs it. */
const helm = (process.env.PATH ?? "")
  .split(":")
  .map((dir) => join(dir, "helm"))
  .find((path) => existsSync(path));

/** Renders the chart as the release `inlet` in the namespace `inlet`, unless `release` is given. */
async function render(values: readonly string[] = [], release = "inlet"): Promise<readonly Manifest[]> {
  const set = values.flatMap((value) => ["--set", value]);
  const args = ["template", release, CHART, "--namespace", release, ...set];
  const { stdout } = await run(helm ?? "helm", args, { maxBuffer: 16 * 1024 * 1024 });
  return parseManifests(stdout);
}

const EVERYTHING = [
  "ingress.enabled=true",
  "serviceMonitor.enabled=true",
  "serviceMonitor.labels.release=prometheus",
  "prometheusRule.enabled=true",
  "grafanaDashboard.enabled=true",
  "readers[0].deployment=orders-reader",
  "readers[0].namespace=orders",
  "readers[0].appId=app_a",
  "readers[0].subscriptionId=sub_a",
  "readers[0].secret=orders-reader-lag",
  "readers[0].targetLag=1000",
  "readers[0].maxReplicas=20",
];

const named = (manifests: readonly Manifest[], kind: string, name: string): Manifest | undefined =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name);
const selectorOf = ({ spec }: Manifest): unknown => spec.selector.matchLabels ?? spec.selector;

const reason = helm === undefined ? " (skipped: helm is not on the PATH)" : "";
describe.skipIf(helm === undefined)(`the Helm chart${reason}`, () => {
  it("passes the checks of Helm, and has the version of the gateway", async () => {
    const { stdout } = await run(helm ?? "helm", ["lint", "--strict", CHART]);
    expect(stdout).toContain("0 chart(s) failed");
    const { version, appVersion } = parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"));
    expect([version, appVersion]).toEqual([packageJson.version, packageJson.version]);
  });

  it("renders the objects of config/kubernetes with the same settings", async () => {
    const rendered = await render(EVERYTHING);
    // The chart creates no namespace and no secret.
    const expected = readManifests().filter(({ kind }) => !["Namespace", "Secret"].includes(kind));
    expect(expected.length).toBeGreaterThan(15);
    for (const { kind, metadata, spec, data } of expected) {
      const found = named(rendered, kind, metadata.name);
      expect(found, `${kind} ${metadata.name}`).toBeDefined();
      if (found === undefined) continue;
      expect(found.data).toEqual(data);
      // Ids are examples.
      const text = JSON.stringify({ spec, metadata })
        .replace("APP_ID", "app_a")
        .replace("SUBSCRIPTION_ID", "sub_a");
      expect(found).toMatchObject(JSON.parse(text));
    }
  });

  it("renders objects that match the schemas of Kubernetes and KEDA, each with the labels of the release", async () => {
    for (const manifest of await render(EVERYTHING)) {
      expect(manifest.metadata.labels).toMatchObject({
        "app.kubernetes.io/name": "inlet",
        "app.kubernetes.io/instance": "inlet",
      });
      if (manifest.apiVersion.startsWith("monitoring.coreos.com/")) continue;
      expect([manifest.kind, manifest.metadata.name, await validateManifest(manifest)]).toEqual([
        manifest.kind,
        manifest.metadata.name,
        [],
      ]);
    }
  });

  it("selects only pods of its own release", async () => {
    const rendered = await render(EVERYTHING, "second");
    const selecting = rendered.filter(({ spec }) => spec?.selector !== undefined);
    expect(selecting.length).toBeGreaterThan(10);
    for (const one of selecting)
      expect(selectorOf(one)).toMatchObject({ "app.kubernetes.io/instance": "second" });
    expect(named(rendered, "Deployment", "second-hooks")).toBeDefined();
  });

  it("installs the alert rules and the dashboard unchanged, under the job name that they expect", async () => {
    const rendered = await render(EVERYTHING);
    const rules = parse(readFileSync(join(CONFIG, "prometheus/alerts.yaml"), "utf8"));
    expect(named(rendered, "PrometheusRule", "inlet")?.spec).toEqual(rules);
    const dashboard = named(rendered, "ConfigMap", "inlet-dashboard")?.data?.["inlet.json"] ?? "";
    expect(JSON.parse(dashboard)).toEqual(
      JSON.parse(readFileSync(join(CONFIG, "grafana/dashboard.json"), "utf8")),
    );
    const monitor = named(rendered, "ServiceMonitor", "inlet");
    const service = named(rendered, "Service", "inlet-metrics");
    expect(service?.metadata.labels).toMatchObject(monitor?.spec.selector.matchLabels);
    expect(service?.metadata.labels?.[monitor?.spec.jobLabel]).toBe("inlet");
    expect(monitor?.spec.endpoints).toEqual([{ port: service?.spec.ports[0].name }]);
  });

  it("renders one pool with all roles", async () => {
    const others = ["api", "sources", "delivery"].map((name) => `pools.${name}=null`);
    const rendered = await render([
      "pools.hooks.roles=",
      "ingress.enabled=true",
      "ingress.api.pool=hooks",
      ...others,
    ]);
    const deployments = rendered.filter(({ kind }) => kind === "Deployment");
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual(["inlet-hooks"]);
    expect(deployments[0]?.spec.template.spec.containers[0].env).toBeUndefined();
    const backends = rendered
      .filter(({ kind }) => kind === "Ingress")
      .map(({ spec }) => spec.rules[0].http.paths[0].backend.service.name);
    expect(backends).toEqual(["inlet-hooks", "inlet-hooks"]);
  });

  it.each([
    ["pools.api.replica=3", "Additional property replica is not allowed"],
    ["config.INLET_MASTER_KEY=a", "INLET_MASTER_KEY"],
    ["config.INLET_PORT=1", "Expected: string, given: integer"],
    ["pools.api.roles=web", "pools.api.roles"],
    ["readers[0].deployment=a", "appId is required"],
  ])("rejects the value %s", async (value, message) => {
    await expect(render([value])).rejects.toThrow(message);
  });
});
