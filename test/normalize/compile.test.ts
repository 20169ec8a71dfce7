import { describe, expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import type { Definition } from "../../src/event/definition.ts";
import { getRuleTopic } from "../../src/normalize/entry.ts";
import { ITEM_ROOT, type KindProfile } from "../../src/normalize/profile.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { channel, rulesOf, type Settings, settings } from "./support.ts";

function compileErrors(
  definitions: readonly Definition[],
  changes: Settings = {},
  profile = webhook.profile,
) {
  const compiled = compileRules({ channel, profile, config: settings(changes), definitions });
  return compiled.ok ? [] : compiled.error;
}

describe("compiling event definitions", () => {
  it("reports all invalid definitions, each with the path of the invalid field", () => {
    const findings = compileErrors(
      [
        { type: "a", typePath: "$.type" },
        { type: "b", typePath: "$[", idPath: "id", payloadPath: "$nowhere" },
        { type: "c", idPath: "$..a..b..c" },
      ],
      { itemsPath: "$.a[" },
    );
    expect(findings.map(({ path }) => path)).toEqual([
      "config.itemsPath",
      "events[1].typePath",
      "events[1].idPath",
      "events[1].payloadPath",
      "events[2].idPath",
    ]);
    for (const { message } of findings) expect(message).not.toBe("");
  });

  it("rejects a path that is invalid in the channel's path syntax", () => {
    const filter: Definition = { type: "a", payloadPath: "$.a[?(@.b)]" };
    expect(compileErrors([filter])).toEqual([]);
    expect(compileErrors([filter], { pathSyntax: "jsonpath-plus" })).toHaveLength(1);
  });

  it("rejects an itemsPath that starts from the headers instead of the body", () => {
    expect(compileErrors([], { itemsPath: "$headers.a" })).toHaveLength(1);
    expect(compileErrors([], { itemsPath: "$body.a" })).toEqual([]);
  });

  it("rejects a definition that sets a path for which the channel kind has a fixed value", () => {
    const profile: KindProfile = {
      roots: new Map([["type", ITEM_ROOT]]),
      fixedPaths: { typePath: "$type" },
    };
    const definitions: Definition[] = [
      { type: "a" },
      { type: "b", typePath: "$type" },
      { type: "c", idPath: "$.id" },
    ];
    expect(compileErrors(definitions, {}, profile)).toEqual([
      {
        path: "events[2].idPath",
        message: "must not be set, because this kind of channel uses a fixed path",
      },
    ]);
  });
});

describe("compiled event definitions", () => {
  it("are grouped by typePath, even if the same path is written in different ways", () => {
    const paths = ["$.a", "$['a']", "$headers['X-Type']", "$headers['x-type']", "$body.a", "$..a", "$..a"];
    const rules = rulesOf(paths.map((typePath, index) => ({ type: `t${index}`, typePath })));
    expect(rules.groups.map(({ byType }) => [...byType.keys()])).toEqual([
      ["t0", "t1"],
      ["t2", "t3"],
      ["t4"],
      ["t5", "t6"],
    ]);
  });

  it("percent-encode the special characters of an event type in the topic name", () => {
    const rules = rulesOf([{ type: "order {new} ü" }]);
    const [topic] = rules.always.map((rule) => getRuleTopic(rules, rule));
    expect(topic).toBe("events.org_1.apps.app.event_received.app_1.hook.order%20%7Bnew%7D%20ü");
  });

  it("are compiled in time linear in their number, if they share a typePath", () => {
    const countReads = (count: number): number => {
      let reads = 0;
      const definitions = Array.from({ length: count }, (_, index): Definition => {
        const definition = {
          type: `t${index}`,
          typePath: "$headers['x-type']",
          idPath: `$.a${index}.id`,
          payloadPath: `$.a${index}[*].data`,
        };
        return new Proxy(definition, {
          get(target, name) {
            reads++;
            return Reflect.get(target, name);
          },
        });
      });
      const { groups } = rulesOf(definitions);
      expect(groups.map(({ byType }) => byType.size)).toEqual([count]);
      return reads;
    };
    expect(countReads(1_000)).toBe(10 * countReads(100));
  });
});
