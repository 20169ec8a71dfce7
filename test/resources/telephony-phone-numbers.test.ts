import { type CountryCode, getCountries, getExampleNumber } from "libphonenumber-js/max";
import examples from "libphonenumber-js/mobile/examples";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toE164 } from "../../src/resources/telephony-phone-numbers/e164.ts";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside, missing, visible } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let sipTrunkId: string;
let organizationId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  sipTrunkId = await trunkOf(api.call);
  organizationId = (await api.call("GET", "/organizations")).body[0].id;
});
afterAll(() => api[Symbol.asyncDispose]());

const PATH = "/telephony/phone-numbers";
const trunkOf = async (call: Call, sipProvider = "sip_provider_1"): Promise<string> =>
  (await call("POST", "/telephony/sip-trunks", { name: "trunk", sipProvider })).body.id;
const register = (body: object, call: Call = api.call) =>
  call("POST", `${PATH}/register`, { sipProvider: "sip_provider_1", sipTrunkId, ...body });
const act = (what: "assign" | "unassign", body: object, call: Call = api.call) =>
  call("POST", `${PATH}/${what}`, body);

let next = 0;
/** One that nobody has: a mobile number of the United Kingdom. */
const fresh = () => ({ countryCode: "GB", phoneNumber: `07400 1${String(10_000 + next++)}` });
const number = async (call: Call = api.call, trunk = sipTrunkId) =>
  (await register({ ...fresh(), sipTrunkId: trunk }, call)).body;

const example = (country: CountryCode) => {
  const found = getExampleNumber(country, examples);
  if (!found) throw new Error(`there is no example number of ${country}`);
  return found;
};

describe("E.164", () => {
  it("is found of a number of every country, as it is written there or abroad", async () => {
    const wrong: string[] = [];
    for (const country of getCountries()) {
      const { number: e164 } = example(country);
      for (const format of ["NATIONAL", "INTERNATIONAL", "E.164"] as const) {
        const text = example(country).format(format);
        const found = await toE164(country, text);
        if (!found.ok || found.value !== e164) wrong.push(`${country} ${text}`);
      }
    }
    expect(getCountries().length).toBeGreaterThan(240);
    expect(wrong).toEqual([]);
  });

  it.each([
    ["US", "+49 30 901820"],
    ["CA", "+1 213 373 4253"],
    ["DE", "0171 1"],
    ["DE", "+4930901820 ext. 5"],
    ["DE", "call 030 901820"],
    ["DE", "030 901820 or 030 901821"],
    ["DE", "not a number"],
    ["GB", "112"],
    ["US", "+1 555 555 5555"],
    ["IT", `+39${"1".repeat(60)}`],
  ])("is not made for %s of %s", async (country, text) => {
    expect(await toE164(country, text)).toMatchObject({ ok: false, error: { path: "phoneNumber" } });
  });

  it("is not made for a country that there is not", async () => {
    for (const country of ["ZZ", "EU", "UK", "AQ"]) {
      expect(await toE164(country, "+4930901820")).toMatchObject({ error: { path: "countryCode" } });
    }
  });
});

describe("registering a phone number", () => {
  it.each([
    "US",
    "GB",
    "DE",
    "FR",
    "IT",
    "ES",
    "JP",
    "IN",
    "BR",
    "AU",
    "ZA",
    "KE",
    "IM",
  ] as const)("keeps that of %s as E.164", async (countryCode) => {
    const phoneNumber = example(countryCode).formatNational();
    const { status, body } = await register({ countryCode, phoneNumber });
    expect(status).toBe(200);
    expect(body).toEqual({
      id: expect.stringMatching(/^pn_/),
      channelId: null,
      countryCode,
      e164: example(countryCode).number,
      organizationId,
      trunkId: sipTrunkId,
      status: "pending_activation",
      createdAt: expect.any(String),
      updatedAt: body.createdAt,
    });
    expect((await api.call("GET", `${PATH}/${body.id}`)).body).toEqual(body);
  });

  it("names each field that is missing, unknown or unfit", async () => {
    const details = async (body: object) =>
      (await api.call("POST", `${PATH}/register`, body)).body.details.map(
        ({ path }: { path: string }) => path,
      );
    expect(await details({})).toEqual(["countryCode", "phoneNumber", "sipProvider", "sipTrunkId"]);
    const fit = { ...fresh(), sipProvider: "sip_provider_1", sipTrunkId };
    expect(await details({ ...fit, countryCode: "gb", sipProvider: "other", more: 1 })).toEqual([
      "countryCode",
      "sipProvider",
      "more",
    ]);
    expect(await details({ ...fit, countryCode: "ZZ" })).toEqual(["countryCode"]);
    expect(await details({ ...fit, phoneNumber: "1" })).toEqual(["phoneNumber"]);
    expect(await details({ ...fit, countryCode: "FR" })).toEqual(["phoneNumber"]);
    expect(await details({ ...fit, sipProvider: "sip_provider_2" })).toEqual(["sipProvider"]);
  });

  it("needs a trunk of the organization", async () => {
    const body = fresh();
    await expectUnknownInside(stranger, "POST", `${PATH}/register`, sipTrunkId, (id) => ({
      ...{ ...body, sipProvider: "sip_provider_1", sipTrunkId: id },
    }));
    // What does not fit is found before anything is looked up, a trunk of others before its carrier.
    expect((await register({ countryCode: "GB", phoneNumber: "1", sipTrunkId: "trk_x" })).status).toBe(400);
    expect((await register({ ...body, sipProvider: "sip_provider_2" }, stranger)).status).toBe(404);
  });

  it("gives a number to one organization, however it is written, and names no holder", async () => {
    const theirs = await trunkOf(stranger);
    const { id, e164 } = await number();
    for (const [call, trunk] of [
      [api.call, sipTrunkId],
      [stranger, theirs],
    ] as const) {
      const { status, body } = await register(
        { countryCode: "GB", phoneNumber: e164, sipTrunkId: trunk },
        call,
      );
      expect([status, body]).toEqual([
        409,
        { code: "conflict", message: "The phone number is registered already." },
      ]);
    }
    await act("unassign", { phoneNumberId: id });
    const again = { countryCode: "GB", phoneNumber: e164, sipTrunkId: theirs };
    expect((await register(again, stranger)).status).toBe(409);
    await api.call("DELETE", `${PATH}/${id}`);
    expect((await register(again, stranger)).status).toBe(200);
  });

  it("gives it to one of many that ask at the same time", async () => {
    const wanted = fresh();
    const theirs = await trunkOf(stranger);
    const answers = await Promise.all(
      [api.call, stranger, api.call, stranger].map((call) =>
        register({ ...wanted, sipTrunkId: call === api.call ? sipTrunkId : theirs }, call),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  });
});

describe("a registered number", () => {
  it("is unassigned, still seen by its organization alone, and assigned again", async () => {
    const made = await number();
    await api.call("PUT", `${PATH}/${made.id}`, { status: "active", channelId: "ch_voice" });
    const { status, body: unassigned } = await act("unassign", { phoneNumberId: made.id });
    expect(status).toBe(200);
    expect(unassigned).toEqual({ ...made, organizationId: null, updatedAt: expect.any(String) });
    expect((await api.call("GET", `${PATH}/${made.id}`)).body).toEqual(unassigned);
    expect((await api.call("GET", `${PATH}?limit=200`)).body).toContainEqual(unassigned);
    await expectHidden(stranger, PATH, made.id, { channelId: "x" });
    expect((await act("unassign", { phoneNumberId: made.id })).status).toBe(409);
    expect((await api.call("PUT", `${PATH}/${made.id}`, { channelId: "x" })).status).toBe(409);
    for (const what of ["assign", "unassign"] as const)
      await expectUnknownInside(stranger, "POST", `${PATH}/${what}`, made.id, (phoneNumberId) => ({
        phoneNumberId,
      }));
    const assigned = await act("assign", { phoneNumberId: made.id, channelId: "messages" });
    expect(assigned.body).toEqual({ ...made, channelId: "messages", updatedAt: expect.any(String) });
    expect((await act("assign", { phoneNumberId: made.id })).status).toBe(409);
  });

  it("is unassigned once by many that ask at the same time", async () => {
    const { id } = await number();
    const answers = await Promise.all([1, 2, 3].map(() => act("unassign", { phoneNumberId: id })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it("is changed in its channel, status and trunk, and in nothing else", async () => {
    const { id } = await number();
    const put = (patch: object) => api.call("PUT", `${PATH}/${id}`, patch);
    const trunkId = await trunkOf(api.call);
    const other = await trunkOf(api.call, "sip_provider_2");
    expect((await put({ channelId: "c", status: "suspended", trunkId })).body).toMatchObject({
      ...{ channelId: "c", status: "suspended", trunkId },
    });
    expect((await put({ channelId: null })).body).toMatchObject({ channelId: null, status: "suspended" });
    for (const [patch, path] of [
      [{ status: "lost" }, "status"],
      [{ status: null }, "status"],
      [{ trunkId: null }, "trunkId"],
      [{ trunkId: other }, "trunkId"],
      [{ e164: "+4930901820" }, "e164"],
      [{ organizationId: null }, "organizationId"],
    ] as const) {
      const { status, body } = await put(patch);
      expect([status, body.details.map((one: { path: string }) => one.path)]).toEqual([400, [path]]);
    }
    const theirs = await trunkOf(stranger);
    const foreign = visible(await put({ trunkId: theirs }));
    expect(foreign.status).toBe(404);
    expect(visible(await put({ trunkId: missing(theirs) }))).toEqual(foreign);
  });

  it("is listed in pages, deleted, and hidden from other organizations", async () => {
    const { id } = await number();
    const total = Number((await api.call("GET", PATH)).headers.get("x-total-count"));
    const last = await api.call("GET", `${PATH}?limit=1&offset=${total - 1}`);
    expect([last.body[0].id, last.body.length]).toEqual([id, 1]);
    await expectHidden(stranger, PATH, id, { channelId: "x" });
    const listed = (await stranger("GET", `${PATH}?limit=200`)).body;
    expect(listed.map((one: { id: string }) => one.id)).not.toContain(id);
    expect((await api.call("DELETE", `${PATH}/${id}`)).body).toEqual({ id });
    expect((await api.call("GET", `${PATH}/${id}`)).status).toBe(404);
  });

  it("needs the permission of telephony", async () => {
    const reader = api.as(await api.keyWith("telephony.read"));
    expect((await reader("GET", PATH)).status).toBe(200);
    expect((await register(fresh(), reader)).status).toBe(403);
  });
});
