import { describe, expect, it } from "vitest";
import { type BodyReading, formCharsetSchema } from "../../src/event/body-reading.ts";
import { queryValues } from "../../src/lib/urlencoded.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { deliveryOf, fieldOf, rulesOf } from "./support.ts";

const FORM = "application/x-www-form-urlencoded";

interface Sent {
  readonly body?: string | Buffer;
  readonly type?: string;
  readonly target?: string;
  readonly formCharset?: BodyReading["formCharset"];
  readonly idPath?: string;
}

function receive({ body = "", type = FORM, target = "/", formCharset, idPath = "$.id" }: Sent) {
  const rules = { ...rulesOf([{ type: "t", idPath }]), reading: { forms: "fields", formCharset } as const };
  const delivery = deliveryOf(body, { headers: { "content-type": type }, query: queryValues(target) });
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  const outcome = normalize(rules, delivery, deps);
  if (outcome instanceof Promise || outcome.kind !== "normalized") throw new Error("not normalized");
  return outcome;
}

const idsOf = (sent: Sent): readonly string[] => {
  const { events, failures } = receive(sent);
  expect(failures).toEqual([]);
  return events.map(({ id }) => id);
};

describe("the fields of a form", () => {
  it.each([
    ["UTF-8 by default", "id=caf%C3%A9", FORM, "café"],
    ["the charset of the content type", "id=caf%E9", `${FORM}; charset=windows-1252`, "café"],
    ["a quoted charset", "id=caf%E9", `${FORM}; charset="ISO-8859-1"`, "café"],
    ["a charset with several bytes per character", "id=%D6%D0%CE%C4", `${FORM}; charset=GBK`, "中文"],
    // The second byte of this character is the letter A, which senders do not escape.
    ["a character that is only partly escaped", "id=%83A", `${FORM}; charset=shift_jis`, "ア"],
    ["the field _charset_", "_charset_=windows-1252&id=caf%E9", FORM, "café"],
    [
      "escapes in UTF-8 although the form is in UTF-16",
      Buffer.from("id=%C3%A9", "utf16le"),
      `${FORM}; charset=utf-16le`,
      "é",
    ],
    ["unescaped bytes", Buffer.from("id=caf\xe9+%E8", "latin1"), `${FORM}; charset=latin1`, "café è"],
    ["a percent sign that begins no escape", "id=100%+%zz%C3%A9", FORM, "100% %zzé"],
  ])("are decoded from %s", (_, body, type, id) => {
    expect(idsOf({ body, type })).toEqual([id]);
  });

  it.each<[string, BodyReading["formCharset"], string, string]>([
    ["the encoding of the setting", "windows-1252", FORM, "id=caf%E9"],
    [
      "the encoding of the setting, even if the content type declares another one",
      "latin1",
      `${FORM}; charset=utf-8`,
      "id=caf%E9",
    ],
    ["the encoding that a field names", { field: "charset" }, FORM, "id=caf%E9&charset=windows-1252"],
    [
      "the declared encoding if the field is missing",
      { field: "charset" },
      `${FORM}; charset=latin1`,
      "id=caf%E9",
    ],
  ])("are decoded with `formCharset` from %s", (_, formCharset, type, body) => {
    expect(idsOf({ body, type, formCharset })).toEqual(["café"]);
  });

  it.each([
    ["UTF-8", "id=caf%E9", FORM, 'the field "id" is not valid utf-8'],
    ["UTF-8 in a name", "a%E9=1", FORM, 'the field "a%E9" is not valid utf-8'],
    ["the declared charset", "id=%D6", `${FORM}; charset=gbk`, 'the field "id" is not valid gbk'],
    ["a charset that does not exist", "id=1", `${FORM}; charset=nope`, 'the charset "nope" is not supported'],
  ])("are quarantined as invalid_body if bytes are invalid in %s", (_, body, type, detail) => {
    expect(receive({ body, type })).toMatchObject({
      events: [],
      failures: [{ reason: "invalid_body", detail: expect.stringContaining(detail) }],
    });
  });

  it("are never equal for different bytes", () => {
    const type = `${FORM}; charset=windows-1252`;
    const events = ["id=caf%E9", "id=caf%E8"].flatMap((body) => receive({ body, type }).events);
    expect(new Set(events.map(({ identity }) => identity)).size).toBe(2);
  });

  it("stay escaped in the event's data, whose content type names their charset", () => {
    const { events } = receive({
      body: Buffer.from("id=caf\xe9&x=%E8", "latin1"),
      formCharset: "windows-1252",
    });
    expect(fieldOf(events[0], "data")).toBe("id=caf%E9&x=%E8");
    expect(fieldOf(events[0], "datacontenttype")).toBe(`${FORM}; charset=windows-1252`);
  });
});

describe("a query parameter", () => {
  const query = (target: string, more: Sent = {}): Sent => ({
    body: "{}",
    type: "application/json",
    target,
    idPath: "$query.id",
    ...more,
  });

  it.each<[string, string, string, Sent]>([
    ["UTF-8", "/?id=caf%C3%A9+x", "café x", {}],
    ["the channel's `formCharset`", "/?id=caf%E9&b=%E8", "café", { formCharset: "windows-1252" }],
    [
      "the channel's `formCharset`, even if the bytes are valid UTF-8",
      "/?id=%C3%A9",
      "Ã©",
      { formCharset: "windows-1252" },
    ],
    ["the charset of the content type", "/?id=caf%E9", "café", { type: "application/json; charset=latin1" }],
  ])("is decoded from %s", (_, target, id, more) => {
    expect(idsOf(query(target, more))).toEqual([id]);
  });

  it("is quarantined as invalid_body if it is not valid UTF-8", () => {
    const { events, failures } = receive(query("/?x=1&id=caf%E9"));
    expect(events).toEqual([]);
    expect(failures).toMatchObject([
      {
        reason: "invalid_body",
        detail: expect.stringContaining('the query parameter "id" is not valid UTF-8'),
      },
    ]);
  });

  it("is ignored if no path of the channel reads the query", () => {
    expect(idsOf({ body: '{"id":"1"}', type: "application/json", target: "/?x=%E9" })).toEqual(["1"]);
  });

  it("keeps bytes apart that are not valid UTF-8", () => {
    const values = ["%E9", "%E8", "%E9%E8", "a%F0%9F%98%80%80"].map((text) => queryValues(`/?a=${text}`).a);
    expect(values).toEqual(["\udce9", "\udce8", "\udce9\udce8", "a😀\udc80"]);
  });
});

it("the setting formCharset must name a character encoding", () => {
  expect(formCharsetSchema.safeParse("windows-1252").success).toBe(true);
  expect(formCharsetSchema.safeParse({ field: "charset" }).success).toBe(true);
  const wrong = formCharsetSchema.safeParse("windows-1252x");
  expect(wrong.error?.issues[0]?.message).toContain("must be the name of a character encoding");
});
