import { describe, expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import type { Settings } from "./support.ts";
import { all, channel, fieldOf, type Given, normalizeBody, settings } from "./support.ts";

const given = (ignore: string[], more: Partial<Given> & { config?: Settings } = {}): Given => ({
  ...all,
  ...more,
  config: { ...more.config, dedupe: { by: "content", ignore, ...more.config?.dedupe } },
});

/** Returns the values that decide whether events are duplicates. */
const seen = (body: unknown, options: Given) =>
  normalizeBody(body, options).events.map(({ id, identity, digest }) => ({ id, identity, digest }));

describe("dedupe by content with ignored values", () => {
  const options = given(["$.attempt", "$.meta.retry"]);

  it("finds items equal that differ in the ignored values, have none, or have them elsewhere", () => {
    const first = seen('{"n":1.0,"meta":{"retry":1,"x":[]},"attempt":1}', options);
    expect(first[0]?.identity).toMatch(/^[\w-]{22}$/);
    expect(seen('{"n":1.0,"meta":{"x":[]}}', options)).toEqual(first);
    expect(seen('{"attempt":{"no":2},"n":1.0,"meta":{"x":[],"retry":"2"}}', options)).toEqual(first);
    expect(seen('{"n":1,"meta":{"retry":1,"x":[]},"attempt":1}', options)).not.toEqual(first);
    expect(seen('{"n":1.0,"meta":{"attempt":1,"x":[]},"attempt":1}', options)).not.toEqual(first);
  });

  it("gives an item without ignored values the same id as dedupe without them", () => {
    const body = ' {"n": 1 }';
    expect(seen(body, options)).toEqual(seen(body, { ...all, config: { dedupe: { by: "content" } } }));
  });

  it("publishes the data with the ignored values", () => {
    const [event] = normalizeBody('{"n":1,"attempt":2}', options).events;
    expect(fieldOf(event, "data")).toBe('{"n":1,"attempt":2}');
  });

  it("applies to each item of a delivery, and accepts queries", () => {
    const split = given(["$..attempt"], { config: { itemsPath: "$.items" } });
    const bodyOf = (attempt: number) => ({
      attempt,
      items: [
        { attempt, n: 1 },
        { n: 2, a: [{ attempt }] },
      ],
    });
    const [one, two] = seen(bodyOf(1), split);
    expect(seen(bodyOf(2), split)).toEqual([one, two]);
    expect(one).not.toEqual(two);
  });

  it("compares the item and not the payload, also if onConflict is publish", () => {
    for (const onConflict of ["quarantine", "publish"] as const) {
      const cut = given(["$.data.attempt"], {
        definitions: [{ type: "all", idPath: "$.id", payloadPath: "$.data" }],
        config: { dedupe: { onConflict } },
      });
      const bodyOf = (attempt: number, n: number) => ({ id: "x", n, data: { attempt } });
      expect(seen(bodyOf(2, 1), cut)).toEqual(seen(bodyOf(1, 1), cut));
      expect(seen(bodyOf(1, 2), cut)).not.toEqual(seen(bodyOf(1, 1), cut));
    }
  });

  it("finds the same duplicates in a redrive, except with a new id", () => {
    const redrive = (asNewId: boolean) => ({ id: "rd", item: null, definitions: [], asNewId });
    const body = { n: 1, attempt: 1 };
    const retry = { n: 1, attempt: 2 };
    expect(seen(retry, { ...options, only: redrive(false) })).toEqual(seen(body, options));
    expect(seen(retry, { ...options, only: redrive(true) })).toMatchObject([{ id: "rd/0" }]);
  });

  it("compares forms and XML in their JSON form", () => {
    const typed = (type: string) => ({ ...options, delivery: { headers: { "content-type": type } } });
    const form = typed("application/x-www-form-urlencoded");
    expect(seen("n=1&attempt=1", form)).toEqual(seen("attempt=2&n=1", form));
    expect(seen("n=1&attempt=1", form)).not.toEqual(seen("n=2&attempt=1", form));
    const xml = { ...given(["$.e.attempt"]), delivery: { headers: { "content-type": "application/xml" } } };
    const element = (n: number, attempt: number) => `<e><n>${n}</n><attempt>${attempt}</attempt></e>`;
    expect(seen(element(1, 1), xml)).toEqual(seen(element(1, 2), xml));
    expect(seen(element(1, 1), xml)).not.toEqual(seen(element(2, 1), xml));
  });

  it("finds texts and empty bodies without values as before", () => {
    const text = { ...options, delivery: { headers: { "content-type": "text/plain" } } };
    expect(seen("a", text)).toEqual(seen("a", text));
    expect(seen("a", text)).not.toEqual(seen("b", text));
    expect(seen("", options)).toMatchObject([{ id: "fresh_1", identity: "" }]);
  });

  it("uses the path syntax of the channel, and never ignores the whole item", () => {
    const plus = given(["$.*~", "$..", "$.a.*"], { config: { pathSyntax: "jsonpath-plus" } });
    expect(seen({ n: 1, a: { b: 1 } }, plus)).toHaveLength(1);
  });

  it.each([
    ["$headers.x", "unknown root $headers; use one of $"],
    ["attempt", "a path must begin with $"],
    ["$", "must select values inside of the item, because the item itself counts"],
  ])("rejects the path %s", (path, message) => {
    const config = settings({ dedupe: { by: "content", ignore: ["$.a", path] } });
    const compiled = compileRules({ channel, profile: webhook.profile, config, definitions: [] });
    expect(compiled).toEqual({ ok: false, error: [{ path: "config.dedupe.ignore[1]", message }] });
  });

  it("quarantines an item whose ignored values cost too much to find", () => {
    const costly = given(["$..[?@..a]"]);
    const deep = JSON.stringify(Array.from({ length: 60_000 }, (_, n) => ({ n })));
    expect(normalizeBody(deep, costly).failures).toMatchObject([
      { reason: "path_budget", path: "dedupe.ignore" },
    ]);
  });
});
