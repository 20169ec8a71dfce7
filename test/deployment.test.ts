import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { EXIT } from "../src/cli/exit.ts";
import { SETTING_LIST } from "../src/config/schema.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly suggested_action: string };
}

// `test/deep/prometheus.test.ts` tests them with promtool.
describe("the alert rules", () => {
  const { groups }: { groups: { rules: Rule[] }[] } = parse(read("config/prometheus/alerts.yaml"));
  const rules = groups.flatMap((group) => group.rules);

  it("each have a summary, a suggested action and a delay before they fire", () => {
    expect(rules.length).toBeGreaterThan(20);
    for (const { alert, annotations, labels, for: wait } of rules) {
      expect(alert).toMatch(/^Inlet[A-Z]/);
      expect(annotations.summary).toMatch(/\.$/);
      expect(annotations.suggested_action).toMatch(/\.$/);
      expect(["warning", "critical"]).toContain(labels.severity);
      expect(wait).toMatch(/^\d+[mh]$/);
    }
  });

  it("use only documented metrics, and the Grafana dashboard also does", () => {
    const page = read("src/docs/metrics.md");
    const text = rules.map(({ expr }) => expr).join("\n") + read("config/grafana/dashboard.json");
    const names = [...text.matchAll(/\b(inlet_[a-z_]+?)(?:_bucket|_sum|_count)?\b/g)].map(
      ([, name = ""]) => name,
    );
    expect(names.length).toBeGreaterThan(60);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it("each have a Prometheus test in which the alert fires and one in which it does not", () => {
    const { tests }: { tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[] } = parse(
      read("config/prometheus/alerts.test.yaml"),
    );
    const shown = tests.flatMap(({ alert_rule_test: checks }) => checks);
    const namesOf = (fires: boolean) =>
      shown.filter((one) => one.exp_alerts.length > 0 === fires).map((one) => one.alertname);
    const names = rules.map(({ alert }) => alert).sort();
    expect(namesOf(true).sort()).toEqual(names);
    expect(namesOf(false).sort()).toEqual(names);
  });
});

describe("the systemd unit", () => {
  const unit = read("config/inlet.service");
  const valuesOf = (name: string): readonly string[] =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value = ""]) => value);

  it("uses existing settings, waits until the gateway has drained, and does not restart a gateway with invalid settings", () => {
    const known = SETTING_LIST.map(({ name }) => name);
    const settings = [...unit.matchAll(/\b([A-Z][A-Z_]+)=\S/g)].map(([, name = ""]) => name);
    expect(settings.filter((name) => name !== "NODE_ENV" && !known.includes(name))).toEqual([]);
    expect(settings).toContain("INLET_DATA_DIR");
    expect(valuesOf("ExecStart")).toEqual(["/usr/bin/node src/main.ts --config /etc/inlet/inlet.env"]);
    const [environment = ""] = valuesOf("Environment");
    const delay = Number(/INLET_DRAIN_DELAY_SECONDS=(\d+)/.exec(environment)?.[1]);
    expect(Number(valuesOf("TimeoutStopSec")[0])).toBeGreaterThan(delay + 20);
    expect(valuesOf("RestartPreventExitStatus")).toEqual([`${EXIT.wrongSettings} ${EXIT.dataDirInUse}`]);
    // The gateway stops its embedded PostgreSQL and Redis itself, last.
    expect(valuesOf("KillMode")).toEqual(["mixed"]);
  });

  it("passes systemd-analyze verify, and has a low exposure level in systemd-analyze security", async (context) => {
    const analyze = "/usr/bin/systemd-analyze";
    if (!existsSync(analyze)) return context.skip("there is no systemd-analyze");
    const dir = await mkdtemp(join(tmpdir(), "inlet-unit-"));
    try {
      const path = join(dir, "inlet.service");
      // systemd requires that the program exists.
      await writeFile(path, unit.replace("/usr/bin/node", process.execPath));
      const run = promisify(execFile);
      expect(await run(analyze, ["verify", path])).toEqual({ stdout: "", stderr: "" });
      const options = ["--offline=true", "--threshold=20", "--no-pager"];
      expect((await run(analyze, ["security", ...options, path])).stdout).toContain("Overall exposure level");
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
