import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { readPresets } from "../../../src/verify/presets.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

// biome-ignore lint/suspicious/noExplicitAny: a JSON Schema of any shape
type Schema = any;

const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

/** Returns the paths of all properties that have no description. */
function undescribed(schema: Schema, path = ""): string[] {
  const properties = Object.entries<Schema>(schema.properties ?? {});
  const branches = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
  return [
    ...properties.flatMap(([name, property]) => [
      ...(property.description ? [] : [`${path}.${name}`]),
      ...undescribed(property, `${path}.${name}`),
    ]),
    ...(schema.items ? undescribed(schema.items, `${path}[]`) : []),
    ...branches.flatMap((branch: Schema) => undescribed(branch, path)),
  ];
}

describe("GET /channel-kinds", () => {
  it("returns the settings of each channel kind as JSON Schema, with a default and a description for each setting", async () => {
    const { status, body, headers } = await api.call("GET", "/channel-kinds");
    expect([status, headers.get("x-total-count")]).toEqual([200, String(body.length)]);
    const webhook = body.find((one: Schema) => one.kind === "webhook");
    expect(webhook).toMatchObject({ addressed: true, secretSettings: ["secrets"] });
    const { settings } = webhook;
    expect(settings).toMatchObject({
      type: "object",
      additionalProperties: false,
      properties: {
        dedupe: { properties: { windowSeconds: { type: "integer", minimum: 0, default: 86_400 } } },
        onInvalid: { enum: ["quarantine", "reject"], default: "quarantine" },
        secrets: { writeOnly: true },
      },
    });
    expect(settings.required ?? []).toEqual([]);
    for (const kind of body) expect(undescribed(kind.settings)).toEqual([]);
  });

  it("returns a schema that accepts exactly the settings that the API accepts", async () => {
    const body = await api.call.get("/channel-kinds");
    const fits = ajv.compile(body.find((one: Schema) => one.kind === "webhook").settings);
    const configs = [
      {},
      { dedupe: { windowSeconds: 0 } },
      { dedupe: { windowSeconds: -1 } },
      { verification: { scheme: "hmac", name: "x-signature" } },
      { verification: { scheme: "hmac" } },
      { verification: { scheme: "unheard-of" } },
      { limits: { maxDepth: 513 } },
      { unknown: 1 },
    ];
    for (const config of configs) {
      const channels = [{ uid: "c", kind: "webhook", config }];
      const { status } = await api.call("POST", "/blueprints", { title: "x", channels });
      expect([config, fits(config)]).toEqual([config, status === 200]);
    }
  });
});

describe("GET /verification-schemes and /presets", () => {
  it("return each verification scheme, with its settings as JSON Schema", async () => {
    const body = await api.call.get("/verification-schemes");
    expect(body).toMatchObject([
      { scheme: "none", needsSecret: false, settings: { properties: { scheme: { const: "none" } } } },
      { scheme: "hmac", needsSecret: true, settings: { required: ["scheme", "name"] } },
      { scheme: "standardWebhooks" },
      { scheme: "asymmetric", needsSecret: false },
      { scheme: "jwt", needsSecret: false },
      { scheme: "token", needsSecret: true },
      { scheme: "anyOf", needsSecret: false },
    ]);
    for (const { settings } of body) expect(undescribed(settings)).toEqual([]);
  });

  it("list each preset by provider name, with verification settings that its scheme accepts", async () => {
    const schemes = await api.call.get("/verification-schemes");
    const fits = (verification: Schema): boolean => {
      const { settings } = schemes.find(({ scheme }: Schema) => scheme === verification.scheme);
      return ajv.validate(settings, verification);
    };
    const { body, headers } = await api.call("GET", "/presets");
    const { size } = readPresets();
    expect([body.length, headers.get("x-total-count")]).toEqual([size, String(size)]);
    const names = body.map(({ preset }: Schema) => preset);
    expect(names).toEqual([...names].sort());
    const unfit = body.filter(({ verification }: Schema) => !fits(verification));
    expect(unfit.map(({ preset }: Schema) => preset)).toEqual([]);
    const github = body.find(({ preset }: Schema) => preset === "github");
    expect(github).toMatchObject({
      title: "GitHub",
      documentationUrl: expect.stringMatching(/^https:/),
      secret: { label: "Secret", hint: expect.any(String) },
      verification: { scheme: "hmac", name: "X-Hub-Signature-256" },
      typePath: "$headers['x-github-event']",
    });
    expect(await api.call.get("/presets?limit=2&offset=1")).toEqual(body.slice(1, 3));
  });

  it("return one preset by name, and suggest the closest name for a misspelled one", async () => {
    const presets = await api.call.get("/presets");
    expect(await api.call.get("/presets/github")).toEqual(
      presets.find(({ preset }: Schema) => preset === "github"),
    );
    for (const name of ["githb", "GitHub1", "gitub"]) {
      const { status, body } = await api.call("GET", `/presets/${name}`);
      expect([status, body.message]).toEqual([
        404,
        "Preset not found. Did you mean github? `GET /presets` lists all presets.",
      ]);
      const channels = [{ uid: "c", kind: "webhook", config: { preset: name } }];
      const refused = await api.call("POST", "/blueprints", { title: "x", channels });
      expect(refused.body.details).toEqual([
        { path: "channels[0].config.preset", message: expect.stringContaining("did you mean github?") },
      ]);
    }
    expect((await api.call("GET", "/presets/nothing-like-it")).body.message).toBe(
      "Preset not found. `GET /presets` lists all presets.",
    );
  });

  it("are paginated like all lists of the API", async () => {
    const { body, headers } = await api.call("GET", "/verification-schemes?limit=1&offset=1");
    expect([body.length, headers.get("x-total-count")]).toEqual([1, "7"]);
    expect((await api.call("GET", "/channel-kinds?limit=0")).status).toBe(400);
  });
});
