import { describe, expect, it } from "vitest";
import { pollingConfigSchema } from "../../../src/channels/polling/config/config.ts";
import { polling } from "../../../src/channels/polling/polling.ts";
import { findingsOf } from "../../../src/lib/findings.ts";

const ISSUES = { preset: "github", stream: "issues", params: { owner: "octo", repo: "demo" } };
const parse = (config: object) => pollingConfigSchema.parse(config);

/** Returns the errors as texts, such as `params.owner: is required`. */
function errorsOf(config: object): readonly string[] {
  const { error } = pollingConfigSchema.safeParse(config);
  if (error === undefined) return [];
  return findingsOf(error, config).map(({ path, message }) => `${path}: ${message}`);
}

describe("a polling channel with a preset", () => {
  it("gets the settings of the stream, filled with its parameters", () => {
    expect(parse(ISSUES)).toMatchObject({
      ...ISSUES,
      connection: "required",
      request: {
        url: "https://api.github.com/repos/octo/demo/issues",
        query: { since: "{{cursor | isoSeconds}}", per_page: "100" },
      },
      itemId: "$.id",
      versionPath: "$.updated_at",
      discriminator: { by: "timestamp", path: "$.updated_at", format: "iso" },
      pagination: { by: "page", pageSize: 100, maxPages: 100 },
      schedule: { intervalSeconds: 60 },
    });
  });

  it("keeps its own settings, member by member", () => {
    const own = {
      ...ISSUES,
      request: { url: "https://github.example.com/api/v3/repos/octo/demo/issues", query: { state: "open" } },
      discriminator: { by: "timestamp", lookBackSeconds: 60 },
      schedule: { intervalSeconds: 600 },
    };
    expect(parse(own)).toMatchObject({
      request: { url: own.request.url, query: { state: "open", sort: "updated" } },
      discriminator: { path: "$.updated_at", lookBackSeconds: 60 },
      schedule: { intervalSeconds: 600 },
    });
  });

  it("replaces a discriminator or pagination by its own, if that has another `by`", () => {
    const { discriminator, pagination } = parse({
      ...ISSUES,
      order: "unordered",
      request: { query: { since: "2026-01-01T00:00:00Z" } },
      discriminator: { by: "seenSet" },
      pagination: { by: "linkHeader" },
    });
    expect(discriminator).toEqual({ by: "seenSet", maxAgeSeconds: 2_592_000, maxKeys: 10_000 });
    expect(pagination).not.toHaveProperty("pageSize");
  });

  it("has the same settings if they are expanded again", () => {
    expect(parse(parse(ISSUES))).toEqual(parse(ISSUES));
  });

  it("is stored with only its own settings, and with whether it needs a connection", () => {
    const stored = polling.fromStream?.(ISSUES, parse(ISSUES));
    expect(stored).toEqual({
      config: { ...ISSUES, connection: "required" },
      definitions: [{ type: "issue" }],
    });
    expect(polling.originOf?.(stored?.config ?? {})).toBe("https://api.github.com");
    expect(polling.fromStream?.({ request: {} }, {})).toBeUndefined();
  });

  it.each<[string, object, string]>([
    [
      "an unknown preset",
      { ...ISSUES, preset: "githup" },
      "preset: is not a known preset; did you mean github?",
    ],
    [
      "a preset without streams",
      { ...ISSUES, preset: "zoom" },
      "stream: is not available, because the preset of Zoom has no streams",
    ],
    [
      "an unknown stream",
      { ...ISSUES, stream: "isues" },
      "stream: must be one of events, issues; did you mean issues?",
    ],
    [
      "a missing stream",
      { preset: "github", params: ISSUES.params },
      "stream: must be one of events, issues",
    ],
    ["a missing parameter", { ...ISSUES, params: { owner: "octo" } }, "params.repo: "],
    ["missing parameters", { preset: "github", stream: "issues" }, "params.owner: "],
    [
      "a parameter that would change the path",
      { ...ISSUES, params: { owner: "octo", repo: ".." } },
      "params.repo: must not be . or ..",
    ],
    [
      "a parameter that does not match its pattern",
      { ...ISSUES, params: { owner: "a/b", repo: "demo" } },
      "params.owner: ",
    ],
    [
      "an unknown parameter",
      { ...ISSUES, params: { ...ISSUES.params, branch: "main" } },
      "params.branch: is not a known field",
    ],
    ["a stream without preset", { stream: "issues" }, "stream: requires `preset`"],
    ["params without preset", { params: {} }, "params: requires `preset`"],
    ["no request and no preset", {}, "request: is required without `preset`"],
    ["no discriminator and no preset", {}, "discriminator: is required without `preset`"],
    ["a wrong setting of its own", { ...ISSUES, order: "up" }, "order: "],
    ["settings that contradict the preset's", { ...ISSUES, order: "descending" }, "pagination.by: "],
  ])("is rejected with %s", (_, config, error) => {
    expect(errorsOf(config).some((text) => text.startsWith(error))).toBe(true);
  });
});
