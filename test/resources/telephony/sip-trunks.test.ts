import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const PATH = "/telephony/sip-trunks";
const trunk = (body: object = {}) =>
  call.post(PATH, { name: "Office", sipProvider: "sip_provider_1", ...body });

describe("a SIP trunk", () => {
  it("can be created, read, listed, changed and deleted", async () => {
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
    expect(await call.get(`${PATH}/${made.id}`)).toEqual(made);
    const { body, headers } = await call("GET", PATH);
    expect([body, headers.get("x-total-count")]).toEqual([[made, plain], "2"]);
    const patch = { name: "New", host: "2001:db8::1", port: null };
    const changed = await call.put(`${PATH}/${made.id}`, patch);
    expect(changed).toEqual({ ...made, ...patch, updatedAt: expect.any(String) });
    for (const { id } of [made, plain]) expect(await call.delete(`${PATH}/${id}`)).toEqual({ id });
    expect(await call.get(PATH)).toEqual([]);
  });

  it("is rejected with an invalid carrier, port, transport or host", async () => {
    const fit = { name: "a", sipProvider: "sip_provider_1" };
    const refused = async (body: object) =>
      (await call.expectRejection("POST", PATH, { ...fit, ...body })).paths;
    const wrong = { sipProvider: "carrier", host: "a b", port: 0, transport: "sctp" };
    expect(await refused(wrong)).toEqual(Object.keys(wrong));
    for (const host of ["", "a..b", "-a.example", "a.example:5060", "sip:a.example", "user@a.example"])
      expect([host, await refused({ host })]).toEqual([host, ["host"]]);
    const { id } = await trunk();
    expect(await call.expectRejection("PUT", `${PATH}/${id}`, { sipProvider: "carrier" })).toMatchObject({
      status: 400,
      paths: ["sipProvider"],
    });
  });

  it("can change its other fields, even if the gateway no longer offers its carrier", async () => {
    const { id } = await trunk();
    const { db } = api.database;
    await db.updateTable("sipTrunks").set({ sipProvider: "former" }).where("id", "=", id).execute();
    expect(await call.put(`${PATH}/${id}`, { name: "b" })).toMatchObject({
      name: "b",
      sipProvider: "former",
    });
  });

  it("cannot change its carrier or be deleted while numbers refer to the trunk, even unassigned ones", async () => {
    const { id } = await trunk();
    const number = {
      countryCode: "DE",
      phoneNumber: "030 901820",
      sipProvider: "sip_provider_1",
      sipTrunkId: id,
    };
    const registered = await call.post("/telephony/phone-numbers/register", number);
    const refused = async () => {
      const put = await call("PUT", `${PATH}/${id}`, { sipProvider: "sip_provider_2" });
      const removed = await call("DELETE", `${PATH}/${id}`);
      return [put.status, put.body.code, removed.status, removed.body.code];
    };
    expect(await refused()).toEqual([409, "conflict", 409, "conflict"]);
    await call.post("/telephony/phone-numbers/unassign", { phoneNumberId: registered.id });
    expect(await refused()).toEqual([409, "conflict", 409, "conflict"]);
    await call.delete(`/telephony/phone-numbers/${registered.id}`);
    await call.put(`${PATH}/${id}`, { sipProvider: "sip_provider_2" });
    await call.delete(`${PATH}/${id}`);
  });
});
