import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden } from "../support/isolated.ts";

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const PATH = "/telephony/sip-trunks";
const create = (body: object) => api.call("POST", PATH, body);
const trunk = async (body: object = {}) =>
  (await create({ name: "Office", sipProvider: "sip_provider_1", ...body })).body;

describe("a SIP trunk", () => {
  it("is made, seen, listed, changed and deleted", async () => {
    const made = await trunk({ host: "sip.example.com", port: 5080, transport: "tcp" });
    expect(made).toEqual({
      id: expect.stringMatching(/^trk_/),
      name: "Office",
      sipProvider: "sip_provider_1",
      host: "sip.example.com",
      port: 5080,
      transport: "tcp",
      organizationId: expect.stringMatching(/^org_/),
      createdAt: expect.any(String),
      updatedAt: made.createdAt,
    });
    const plain = await trunk();
    expect(plain).toMatchObject({ host: null, port: null, transport: "udp" });
    expect((await api.call("GET", `${PATH}/${made.id}`)).body).toEqual(made);
    const { body, headers } = await api.call("GET", PATH);
    expect([body, headers.get("x-total-count")]).toEqual([[made, plain], "2"]);
    const patch = { name: "New", host: "2001:db8::1", port: null };
    const changed = (await api.call("PUT", `${PATH}/${made.id}`, patch)).body;
    expect(changed).toEqual({ ...made, ...patch, updatedAt: expect.any(String) });
    for (const { id } of [made, plain])
      expect((await api.call("DELETE", `${PATH}/${id}`)).body).toEqual({ id });
    expect((await api.call("GET", PATH)).body).toEqual([]);
  });

  it("is refused with each field that does not fit", async () => {
    const wrong = {
      name: "",
      sipProvider: "carrier",
      host: "a b",
      port: 0,
      transport: "sctp",
      password: "x",
    };
    const { status, body } = await create(wrong);
    expect(status).toBe(400);
    expect(body.details.map(({ path }: { path: string }) => path)).toEqual(Object.keys(wrong));
    for (const host of ["", "a..b", "-a.example", "a.example:5060", "sip:a.example", "user@a.example"]) {
      expect([host, (await create({ name: "a", sipProvider: "sip_provider_1", host })).status]).toEqual([
        host,
        400,
      ]);
    }
    const { id } = await trunk();
    expect((await api.call("PUT", `${PATH}/${id}`, { sipProvider: "carrier" })).body.details).toMatchObject([
      { path: "sipProvider" },
    ]);
  });

  it("keeps a carrier that the gateway is no longer set to, and can be changed otherwise", async () => {
    const { id } = await trunk();
    const { db } = api.database;
    await db.updateTable("sipTrunks").set({ sipProvider: "former" }).where("id", "=", id).execute();
    const { status, body } = await api.call("PUT", `${PATH}/${id}`, { name: "b" });
    expect([status, body.name, body.sipProvider]).toEqual([200, "b", "former"]);
  });

  it("with numbers, assigned or not, keeps its carrier and stays", async () => {
    const { id } = await trunk();
    const number = {
      countryCode: "DE",
      phoneNumber: "030 901820",
      sipProvider: "sip_provider_1",
      sipTrunkId: id,
    };
    const registered = (await api.call("POST", "/telephony/phone-numbers/register", number)).body;
    const refused = async () => {
      const put = await api.call("PUT", `${PATH}/${id}`, { sipProvider: "sip_provider_2" });
      const removed = await api.call("DELETE", `${PATH}/${id}`);
      return [put.status, put.body.code, removed.status, removed.body.code];
    };
    expect(await refused()).toEqual([409, "conflict", 409, "conflict"]);
    await api.call("POST", "/telephony/phone-numbers/unassign", { phoneNumberId: registered.id });
    expect(await refused()).toEqual([409, "conflict", 409, "conflict"]);
    await api.call("DELETE", `/telephony/phone-numbers/${registered.id}`);
    expect((await api.call("PUT", `${PATH}/${id}`, { sipProvider: "sip_provider_2" })).status).toBe(200);
    expect((await api.call("DELETE", `${PATH}/${id}`)).status).toBe(200);
  });

  it("is hidden from other organizations", async () => {
    const { id } = await trunk();
    const stranger = api.as(await api.strangerKey());
    await expectHidden(stranger, PATH, id, { name: "theirs" });
    expect((await stranger("GET", PATH)).headers.get("x-total-count")).toBe("0");
  });
});
