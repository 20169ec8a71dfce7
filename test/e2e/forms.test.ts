import { describe, expect, it } from "vitest";
import { givenChannel, installApp } from "../support/channels.ts";
import { fieldsOn } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";

const gateway = givenGateway();

const FORM = "application/x-www-form-urlencoded";

/** Creates a channel with these settings, sends it one form, and returns the result. */
async function send(config: object, body: string, headers: Readonly<Record<string, string>> = {}) {
  const events = [{ type: "all", typePath: null, idPath: null }];
  const channel = await givenChannel(gateway, { config, events });
  const outcome = await channel.send(body, { "content-type": FORM, ...headers });
  const quarantine = `${channel.appPath}/quarantine`;
  const kept = await gateway.api<{ reason: string; detail: string }[]>("GET", quarantine);
  return { channel, outcome, kept, data: await fieldsOn(gateway.stores, channel.topicOf("all"), "data") };
}

describe("a form-encoded delivery", () => {
  it("is published as the form-encoded text by default", async () => {
    const { data } = await send({}, "payload=%7B%22a%22%3A1%7D");
    expect(data).toEqual(["payload=%7B%22a%22%3A1%7D"]);
  });

  it("is published as the JSON in one of its fields if `forms.field` names that field, with numbers as received", async () => {
    const { data } = await send({ forms: { field: "payload" } }, "x=1&payload=%7B%22a%22%3A+1.50%7D");
    expect(data).toEqual(['{"a": 1.50}']);
  });

  it("is quarantined if the field named in `forms.field` is missing, repeated, or not JSON", async () => {
    for (const body of ["x=1", "payload=1&payload=2", "payload=%7B"]) {
      const { data, kept } = await send({ forms: { field: "payload" } }, body);
      expect(data).toEqual([]);
      expect(kept).toMatchObject([{ reason: "invalid_body" }]);
    }
  });

  it("is quarantined with a suggested fix if the channel's preset expects JSON, and published once `forms` is set", async () => {
    const config = { preset: "datadog", secrets: [{ value: "user:password" }] };
    const headers = { authorization: `Basic ${btoa("user:password")}` };
    const refused = await send(config, "id=1", headers);
    expect(refused.data).toEqual([]);
    expect(refused.kept).toMatchObject([
      { reason: "invalid_body", detail: expect.stringContaining('clear "Encode as form"') },
    ]);
    const { data } = await send({ ...config, forms: "fields" }, "id=1", headers);
    expect(data).toEqual(["id=1"]);
  });

  it("cannot be read from a field with an empty name: the API rejects that setting", async () => {
    const app = await installApp(gateway, []);
    const channel = { uid: "in", kind: "webhook", config: { forms: { field: "" } } };
    await expect(gateway.api("POST", `/apps/${app.id}/channels`, channel)).rejects.toThrow(/forms/);
  });
});
