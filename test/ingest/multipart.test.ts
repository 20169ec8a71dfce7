import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(startHookServer);

const BOUNDARY = "----inlet";
const type = (more = "") => ({ "content-type": `multipart/form-data; boundary=${BOUNDARY}${more}` });
const field = (name: string, value: string, more = ""): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
const file = (name: string, filename: string, content: string): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: text/csv\r\n\r\n${content}\r\n`;
const END = `--${BOUNDARY}--\r\n`;

const mail = `${field("subject", "Hi")}${field("to", "a@x")}${field("to", "b@x")}${file("attachment1", "a.csv", "1,2")}${END}`;
const events = [{ type: "mail", payloadPath: "$" }];

async function explain(config: object, body: string | Buffer, headers: Record<string, string> = type()) {
  const { id, appId } = await server.open(config, events);
  const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, {
    body: Buffer.from(body).toString("base64"),
    bodyEncoding: "base64",
    headers,
    verify: false,
  });
  const [item] = items;
  return item.failures.length > 0 ? item.failures : JSON.parse(item.events[0].data);
}

describe("a delivery in multipart/form-data", () => {
  it("is published as a JSON object of its fields and files", async () => {
    const { id, appId } = await server.open({}, [
      { type: "mail", typePath: null, idPath: "$.subject" },
      { type: "1,2", typePath: "$.attachment1.size", payloadPath: "$.attachment1" },
    ]);
    const { status, text } = await server.send(id, { headers: type(), body: mail });
    expect([status, JSON.parse(text).events]).toMatchObject([200, [{ type: "mail", id: "Hi" }]]);
    const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, {
      body: mail,
      headers: type(),
    });
    const [{ data, event }] = items[0].events;
    expect(event.datacontenttype).toBe("application/json");
    expect(JSON.parse(data)).toEqual({
      subject: "Hi",
      to: ["a@x", "b@x"],
      attachment1: { filename: "a.csv", contentType: "text/csv", size: 3, data_base64: "MSwy" },
    });
  });

  it("has its files published, without their content, or rejected, as `files` says", async () => {
    const sha256 = createHash("sha256").update("1,2").digest("hex");
    expect((await explain({ files: "omit" }, mail)).attachment1).toEqual({
      filename: "a.csv",
      contentType: "text/csv",
      size: 3,
      sha256,
      omitted: true,
    });
    expect(await explain({ files: "reject" }, mail)).toMatchObject([
      {
        reason: "invalid_body",
        detail: expect.stringContaining('accepts no files, but "attachment1" is one'),
      },
    ]);
    expect(await explain({ files: "reject" }, `${field("a", "1")}${file("f", "", "")}${END}`)).toMatchObject({
      a: "1",
    });
    const { id } = await server.open({ files: "reject", onInvalid: "reject" });
    const { status, text } = await server.send(id, { headers: type(), body: mail });
    expect([status, JSON.parse(text).details[0].path]).toEqual([400, "body"]);
  });

  it("is decoded in the encoding of its field, its channel, a field of the form, or `_charset_`", async () => {
    const latin = (...parts: string[]) => Buffer.from(parts.join("") + END, "latin1");
    const e = field("a", "\xe9");
    expect(await explain({}, latin(e))).toMatchObject([
      { reason: "invalid_body", detail: expect.stringContaining('the field "a" is not valid utf-8') },
    ]);
    const own = field("a", "\xe9", "\r\nContent-Type: text/plain; charset=windows-1252");
    expect(await explain({}, latin(own))).toEqual({ a: "é" });
    expect(await explain({}, latin(field("_charset_", "windows-1252"), e))).toMatchObject({ a: "é" });
    expect(await explain({ formCharset: "windows-1252" }, latin(e))).toEqual({ a: "é" });
    const setting = { formCharset: { field: "charset" } };
    expect(await explain(setting, latin(e, field("charset", "iso-8859-1")))).toMatchObject({ a: "é" });
    const each = { formCharset: { fields: "charsets" } };
    const charsets = field("charsets", '{"a":"iso-8859-1","b":"UTF-8"}');
    expect(await explain(each, latin(charsets, e, field("b", "\xc3\xa9")))).toMatchObject({ a: "é", b: "é" });
    expect(await explain(each, latin(field("charsets", "[}"), field("b", "\xc3\xa9")))).toMatchObject({
      b: "é",
    });
  });

  it("is read from one of its fields if `forms` names it", async () => {
    expect(await explain({ forms: { field: "payload" } }, `${field("payload", '{"a":1.0}')}${END}`)).toEqual({
      a: 1,
    });
  });

  it("is verified over its raw bytes, or by a secret in one of its fields", async () => {
    const { id } = await server.open({
      verification: { scheme: "hmac", name: "X-Signature" },
      secrets: [{ value: "k" }],
    });
    const signature = createHmac("sha256", "k").update(mail).digest("hex");
    const headers = { ...type(), "x-signature": signature };
    expect((await server.send(id, { headers, body: mail })).status).toBe(200);
    expect((await server.send(id, { headers, body: mail.replace("Hi", "Ho") })).status).toBe(401);
    const byField = await server.open({
      verification: { scheme: "token", in: "body", name: "$.token" },
      secrets: [{ value: "k" }],
    });
    const send = (token: string) =>
      server.send(byField.id, { headers: type(), body: `${field("token", token)}${mail}` });
    expect([(await send("k")).status, (await send("x")).status]).toEqual([200, 401]);
  });

  it("with files is not verified by a signature over its fields, which does not cover them", async () => {
    const { id } = await server.open({
      verification: {
        scheme: "hmac",
        name: "X-Signature",
        template: "{{parameters}}",
        parameters: { of: "form" },
      },
      secrets: [{ value: "k" }],
    });
    const headers = { ...type(), "x-signature": createHmac("sha256", "k").update("a1").digest("hex") };
    const send = (body: string) => server.send(id, { headers, body: body + END });
    expect((await send(field("a", "1"))).status).toBe(200);
    expect((await send(field("a", "1") + file("f", "x", "1"))).status).toBe(401);
  });

  it("is quarantined with a reason if it is invalid, and has the same result in a redrive", async () => {
    const { id, appId } = await server.open({ files: "reject" }, events);
    const broken = await server.send(id, { headers: type(), body: mail.slice(0, -9) });
    expect(JSON.parse(broken.text).quarantine).toMatchObject([{ reason: "invalid_body" }]);
    const rejected = await server.send(id, { headers: type(), body: mail });
    const [{ id: quarantined }] = JSON.parse(rejected.text).quarantine;
    const path = `/apps/${appId}/quarantine/${quarantined}`;
    expect((await server.spine.api.call.get(path)).detail).toContain("accepts no files");
    await server.spine.api.call.put(`/apps/${appId}/channels/${id}`, { config: { files: "base64" } });
    const { status, body } = await server.spine.api.call("POST", `${path}/redrive`, {});
    expect([status, body.events ?? body]).toMatchObject([200, [{ type: "mail", status: "published" }]]);
  });

  it("is rejected with 415 if it is another kind of multipart", async () => {
    const { id } = await server.open({});
    const headers = { "content-type": `multipart/mixed; boundary=${BOUNDARY}` };
    expect((await server.send(id, { headers, body: mail })).status).toBe(415);
  });
});
