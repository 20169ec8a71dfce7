import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly cure: string };
}

// What promtool says of them: `test/deep/prometheus.test.ts`.
describe("the alert rules", () => {
  const { groups }: { groups: { rules: Rule[] }[] } = parse(read("config/prometheus/alerts.yaml"));
  const rules = groups.flatMap((group) => group.rules);

  it("say what is wrong and what helps, and wait before they fire", () => {
    expect(rules.length).toBeGreaterThan(20);
    for (const { alert, annotations, labels, for: wait } of rules) {
      expect(alert).toMatch(/^Inlet[A-Z]/);
      expect(annotations.summary).toMatch(/\.$/);
      expect(annotations.cure).toMatch(/\.$/);
      expect(["warning", "critical"]).toContain(labels.severity);
      expect(wait).toMatch(/^\d+[mh]$/);
    }
  });

  it("name only metrics that are on the page of them, as the dashboard does", () => {
    const page = read("src/docs/metrics.md");
    const text = rules.map(({ expr }) => expr).join("\n") + read("config/grafana/dashboard.json");
    const names = [...text.matchAll(/\b(inlet_[a-z_]+?)(?:_bucket|_sum|_count)?\b/g)].map(
      ([, name = ""]) => name,
    );
    expect(names.length).toBeGreaterThan(60);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it("are each shown to fire and to clear", () => {
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
