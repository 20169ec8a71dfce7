import { type CountryCode, getCountries, getExampleNumber } from "libphonenumber-js/max";
import examples from "libphonenumber-js/mobile/examples";
import { beforeAll, describe, expect, it } from "vitest";
import { toE164 } from "../../../src/resources/telephony/phone-numbers/e164.ts";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let sipTrunkId: string;
let organizationId: string;
const api = opened(createTestApi);
const { call } = api;
const stranger = opened(async () => api.as(await api.createForeignKey()));
beforeAll(async () => {
  sipTrunkId = await trunkOf(call);
  organizationId = (await call.get("/organizations"))[0].id;
});

const PATH = "/telephony/phone-numbers";
const trunkOf = async (as: Caller, sipProvider = "sip_provider_1"): Promise<string> =>
  (await as.post("/telephony/sip-trunks", { name: "trunk", sipProvider })).id;
const register = (body: object, as: Caller = call) =>
  as("POST", `${PATH}/register`, { sipProvider: "sip_provider_1", sipTrunkId, ...body });
const act = (action: "assign" | "unassign", body: object) => call("POST", `${PATH}/${action}`, body);

let next = 0;
/** Returns an unregistered mobile number of the United Kingdom. */
const fresh = () => ({ countryCode: "GB", phoneNumber: `07400 1${String(10_000 + next++)}` });
const number = async () => (await register(fresh())).body;

const example = (country: CountryCode) => {
  const found = getExampleNumber(country, examples);
  if (!found) throw new Error(`there is no example number of ${country}`);
  return found;
};

describe("the conversion of phone numbers to E.164", () => {
  it("accepts numbers of every country in national, international and E.164 format", async () => {
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
  ])("for the country %s, rejects the invalid number %s", async (country, text) => {
    expect(await toE164(country, text)).toMatchObject({ ok: false, error: { path: "phoneNumber" } });
  });

  it("rejects a country code that does not exist", async () => {
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
  ] as const)("stores a number of %s in E.164 format", async (countryCode) => {
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
    expect(await call.get(`${PATH}/${body.id}`)).toEqual(body);
  });

  it("is rejected with the name of the invalid field if the country, the number or the carrier is invalid", async () => {
    const fit = { ...fresh(), sipProvider: "sip_provider_1", sipTrunkId };
    for (const [unfit, field] of [
      [{ countryCode: "gb" }, "countryCode"],
      [{ countryCode: "ZZ" }, "countryCode"],
      [{ phoneNumber: "1" }, "phoneNumber"],
      [{ countryCode: "FR" }, "phoneNumber"],
      [{ sipProvider: "other" }, "sipProvider"],
      // A valid carrier, but not the carrier of the trunk.
      [{ sipProvider: "sip_provider_2" }, "sipProvider"],
    ] as const)
      expect(await call.expectRejection("POST", `${PATH}/register`, { ...fit, ...unfit })).toEqual({
        status: 400,
        code: "invalid_parameters",
        paths: [field],
      });
  });

  it("reports an invalid number before a missing trunk, and a trunk of another organization before a wrong carrier", async () => {
    const body = fresh();
    expect((await register({ countryCode: "GB", phoneNumber: "1", sipTrunkId: "trk_x" })).status).toBe(400);
    expect((await register({ ...body, sipProvider: "sip_provider_2" }, stranger)).status).toBe(404);
  });

  it("accepts each number once across all organizations and formats, and does not reveal the number's owner", async () => {
    const theirs = await trunkOf(stranger);
    const { id, e164 } = await number();
    for (const [as, trunk] of [
      [call, sipTrunkId],
      [stranger, theirs],
    ] as const) {
      const { status, body } = await register(
        { countryCode: "GB", phoneNumber: e164, sipTrunkId: trunk },
        as,
      );
      expect([status, body]).toEqual([
        409,
        { code: "conflict", message: "The phone number is already registered." },
      ]);
    }
    await act("unassign", { phoneNumberId: id });
    const again = { countryCode: "GB", phoneNumber: e164, sipTrunkId: theirs };
    expect((await register(again, stranger)).status).toBe(409);
    await call.delete(`${PATH}/${id}`);
    expect((await register(again, stranger)).status).toBe(200);
  });

  it("accepts a number only once if four requests register that number concurrently", async () => {
    const wanted = fresh();
    const theirs = await trunkOf(stranger);
    const answers = await Promise.all(
      [call, stranger, call, stranger].map((as) =>
        register({ ...wanted, sipTrunkId: as === call ? sipTrunkId : theirs }, as),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  });
});

describe("a registered number", () => {
  it("can be unassigned, stays visible to its organization, and can be assigned again", async () => {
    const made = await number();
    await call.put(`${PATH}/${made.id}`, { status: "active", channelId: "ch_voice" });
    const { status, body: unassigned } = await act("unassign", { phoneNumberId: made.id });
    expect(status).toBe(200);
    expect(unassigned).toEqual({ ...made, organizationId: null, updatedAt: expect.any(String) });
    expect(await call.get(`${PATH}/${made.id}`)).toEqual(unassigned);
    expect(await call.get(`${PATH}?limit=200`)).toContainEqual(unassigned);
    expect((await act("unassign", { phoneNumberId: made.id })).status).toBe(409);
    expect((await call("PUT", `${PATH}/${made.id}`, { channelId: "x" })).status).toBe(409);
    // The unassigned number has no organization, but other organizations still cannot see it.
    for (const [method, path, body] of [
      ["GET", `${PATH}/${made.id}`],
      ["PUT", `${PATH}/${made.id}`, { channelId: "x" }],
      ["DELETE", `${PATH}/${made.id}`],
      ["POST", `${PATH}/assign`, { phoneNumberId: made.id }],
      ["POST", `${PATH}/unassign`, { phoneNumberId: made.id }],
    ] as const)
      expect([method, path, (await stranger(method, path, body)).status]).toEqual([method, path, 404]);
    const theirs: readonly { readonly id: string }[] = await stranger.get(`${PATH}?limit=200`);
    expect(theirs.map(({ id }) => id)).not.toContain(made.id);
    const assigned = await act("assign", { phoneNumberId: made.id, channelId: "messages" });
    expect(assigned.body).toEqual({ ...made, channelId: "messages", updatedAt: expect.any(String) });
    expect((await act("assign", { phoneNumberId: made.id })).status).toBe(409);
  });

  it("is unassigned only once if three requests unassign the number concurrently", async () => {
    const { id } = await number();
    const answers = await Promise.all([1, 2, 3].map(() => act("unassign", { phoneNumberId: id })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it("can change only its channel, its status and its trunk, and only to a trunk of the same carrier", async () => {
    const { id } = await number();
    const path = `${PATH}/${id}`;
    const trunkId = await trunkOf(call);
    const other = await trunkOf(call, "sip_provider_2");
    const changed = { channelId: "c", status: "suspended", trunkId };
    expect(await call.put(path, changed)).toMatchObject(changed);
    expect(await call.put(path, { channelId: null })).toMatchObject({ channelId: null, status: "suspended" });
    for (const [patch, field] of [
      [{ status: null }, "status"],
      [{ trunkId: null }, "trunkId"],
      [{ trunkId: other }, "trunkId"],
      [{ e164: "+4930901820" }, "e164"],
      [{ organizationId: null }, "organizationId"],
    ] as const)
      expect(await call.expectRejection("PUT", path, patch)).toMatchObject({ status: 400, paths: [field] });
  });

  it("can be listed in pages and deleted", async () => {
    const { id } = await number();
    const total = Number((await call("GET", PATH)).headers.get("x-total-count"));
    const last = await call.get(`${PATH}?limit=1&offset=${total - 1}`);
    expect([last[0].id, last.length]).toEqual([id, 1]);
    expect(await call.delete(`${PATH}/${id}`)).toEqual({ id });
    expect((await call("GET", `${PATH}/${id}`)).status).toBe(404);
  });

  it("can be listed with telephony.read, but registered only with telephony.write", async () => {
    const reader = api.as(await api.keyWith("telephony.read"));
    await reader.get(PATH);
    expect((await register(fresh(), reader)).status).toBe(403);
  });
});
