import { describe, expect, it } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { loadConfig } from "../src/config/load.ts";
import { ROLES, SETTING_LIST } from "../src/config/schema.ts";
import { type Manifest, readManifests, validateManifest } from "./support/manifests.ts";

const manifests = readManifests();
const ofKind = (kind: string): readonly Manifest[] => manifests.filter((one) => one.kind === kind);
const named = (kind: string, name: string): Manifest | undefined =>
  ofKind(kind).find(({ metadata }) => metadata.name === name);

const deployments = ofKind("Deployment").map(({ metadata, spec }) => {
  const [container] = spec.template.spec.containers;
  return { name: metadata.name, spec, pod: spec.template.spec, container };
});

describe("the Kubernetes manifests", () => {
  it("match the schemas of Kubernetes and KEDA", async () => {
    expect(manifests.length).toBeGreaterThan(15);
    for (const manifest of manifests)
      expect([manifest.metadata.name, manifest.kind, await validateManifest(manifest)]).toEqual([
        manifest.metadata.name,
        manifest.kind,
        [],
      ]);
  });

  it("are checked by a validator that detects wrong types, missing fields and misspelled fields", async () => {
    const good = named("Deployment", "inlet-hooks");
    if (good === undefined) throw new Error("there is no inlet-hooks");
    const changed = (change: (spec: Manifest["spec"]) => void): Manifest => {
      const spec = structuredClone(good.spec);
      change(spec);
      return { ...good, spec };
    };
    const wrong = changed((spec) => {
      spec.template.spec.terminationGracePeriodSeconds = "60";
    });
    expect((await validateManifest(wrong)).join()).toContain("must be integer");
    const less = changed((spec) => {
      delete spec.selector;
    });
    expect((await validateManifest(less)).join()).toContain("selector");
    const misspelled = changed((spec) => {
      spec.template.spec.containers[0].readynessProbe = {};
    });
    expect(await validateManifest(misspelled)).toEqual([
      "spec.template.spec.containers.0.readynessProbe is unknown",
    ]);
  });

  it("use only existing settings, and the gateway of each role accepts their values", () => {
    const config = named("ConfigMap", "inlet")?.data ?? {};
    const secret = named("Secret", "inlet")?.stringData ?? {};
    const known = SETTING_LIST.map(({ name }) => name);
    const filledIn = { INLET_MASTER_KEY: "00".repeat(32), INLET_API_KEY: "a-key-of-sixteen-characters" };
    expect(deployments).toHaveLength(4);
    for (const { container } of deployments) {
      const own = Object.fromEntries(
        container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
      );
      const env = { ...config, ...secret, ...own };
      expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
      expect(container.envFrom).toEqual([
        { configMapRef: { name: "inlet" } },
        { secretRef: { name: "inlet" } },
      ]);
      expect(loadConfig({ ...env, ...filledIn })).toMatchObject({ ok: true });
    }
    const roles = deployments.map(({ container }) => container.env[0].value);
    expect(roles.toSorted()).toEqual(ROLES.toSorted());
  });

  it("probe /healthz and /readyz, and give the gateway enough time to drain before termination", () => {
    const delay = Number(named("ConfigMap", "inlet")?.data?.INLET_DRAIN_DELAY_SECONDS);
    for (const { pod, container, spec } of deployments) {
      const { livenessProbe, startupProbe, readinessProbe } = container;
      expect(livenessProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
      expect(startupProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
      expect(readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" });
      expect(delay).toBeGreaterThan(readinessProbe.periodSeconds * readinessProbe.failureThreshold);
      // Requests in flight have 20 s.
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(delay + 20);
      expect(spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
    }
  });

  it("run the gateway without root, privileges or a writable file system", () => {
    for (const { pod, container } of deployments) {
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_534 });
      expect(pod.automountServiceAccountToken).toBe(false);
      // Otherwise Kubernetes would set INLET_PORT to the address of a service.
      expect(pod.enableServiceLinks).toBe(false);
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.resources.requests).toMatchObject({ cpu: expect.any(String) });
      expect(container.resources.limits.memory).toMatch(/i$/);
      expect(container.image).toMatch(new RegExp(`:${packageJson.version}$`));
    }
  });

  it("contain only services, disruption budgets and autoscalers that select pods of an existing deployment", () => {
    const labels = deployments.map(({ spec }) => spec.template.metadata.labels);
    const selectors = [
      ...ofKind("Service").map(({ spec }) => spec.selector),
      ...ofKind("PodDisruptionBudget").map(({ spec }) => spec.selector.matchLabels),
      ...deployments.map(({ spec }) => spec.selector.matchLabels),
    ];
    expect(selectors).toHaveLength(10);
    for (const selector of selectors) expect(labels).toContainEqual(selector);
    for (const { spec } of ofKind("HorizontalPodAutoscaler"))
      expect(named("Deployment", spec.scaleTargetRef.name)?.spec.replicas).toBeUndefined();
    for (const { spec } of ofKind("Ingress"))
      for (const { http } of spec.rules)
        expect(named("Service", http.paths[0].backend.service.name)).toBeDefined();
    const ports = deployments.map(({ container }) =>
      container.ports.map((one: { name: string }) => one.name),
    );
    for (const names of ports) expect(names).toEqual(["http", "metrics"]);
  });
});
