import { describe, expect, it } from "vitest";
import { z } from "zod";
import { timestamp } from "../../../src/http/fields.ts";
import { decimal, hidden, json, once, readOnly, time } from "../../../src/resources/kit/field.ts";
import { organizationId, spaceId, uidField } from "../../../src/resources/kit/fields.ts";
import { toPatchSchema } from "../../../src/resources/kit/merge.ts";
import { createSchemaWriter } from "../../../src/resources/kit/openapi/schemas.ts";
import { shape } from "../../../src/resources/kit/shape.ts";

const board = shape({
  prefix: "brd",
  fields: {
    uid: uidField("board"),
    organizationId,
    spaceId,
    name: z.string().min(1).max(3).meta({ description: "Its name.", example: "A" }),
    owner: once(z.string().max(9).nullable().default(null)),
    rate: decimal(z.number().max(100).default(0)),
    opensAt: time(z.iso.datetime({ offset: true }).nullable().default(null)),
    closedAt: readOnly(time(timestamp.nullable())),
    tags: json(z.array(z.string().max(4)).default([])),
    secret: hidden(z.string()),
  },
  inside: { cards: z.array(z.object({ id: z.string() })), cover: z.object({ id: z.string() }).nullable() },
  meta: { id: "Board", description: "A board." },
});
const createdAt = new Date("2026-01-31T09:30:00Z");
const row = {
  id: "brd_1",
  organizationId: "org_1",
  uid: "b",
  spaceId: null,
  name: "long ago",
  owner: "me",
  rate: "12.5000",
  opensAt: createdAt,
  closedAt: null,
  tags: ["a"],
  secret: "s",
  createdAt,
  updatedAt: createdAt,
};

describe("the definition of an entity", () => {
  it("converts a database row to a response, with times and decimals in the API's format and without hidden fields", () => {
    const cards = [{ id: "card_1" }];
    expect(board.render(row, { cards })).toEqual({
      id: "brd_1",
      organizationId: "org_1",
      uid: "b",
      spaceId: null,
      name: "long ago",
      owner: "me",
      rate: 12.5,
      opensAt: "2026-01-31T09:30:00.000Z",
      closedAt: null,
      tags: ["a"],
      cards,
      cover: null,
      createdAt: "2026-01-31T09:30:00.000Z",
      updatedAt: "2026-01-31T09:30:00.000Z",
    });
    expect(board.render(row)).toMatchObject({ cards: [], cover: null });
  });

  it("accepts stored values in responses, even if they violate the current limits of their field", () => {
    expect(board.input.safeParse({ name: "long ago" }).success).toBe(false);
    expect(board.entity.parse(board.render(row))).toMatchObject({ name: "long ago" });
  });

  it("allows all writable fields in a POST, but only changeable fields in a PUT", () => {
    const changeable = ["uid", "spaceId", "name", "rate", "opensAt", "tags"];
    expect(Object.keys(board.content.shape)).toEqual(changeable);
    expect(Object.keys(board.input.shape).sort()).toEqual([...changeable, "owner"].sort());
    const patch = toPatchSchema(board.content);
    expect(patch.safeParse({ name: "b", opensAt: null }).success).toBe(true);
    expect(patch.safeParse({ owner: "me" }).success).toBe(false);
  });

  it("is written to the OpenAPI document with descriptions and examples, and with limits only in request bodies", () => {
    const schemas = createSchemaWriter();
    schemas.output(board.entity);
    const { properties } = schemas.components().Board as { properties: Record<string, unknown> };
    expect(properties.name).toEqual({ type: "string", description: "Its name.", examples: ["A"] });
    expect(schemas.input(board.input)).toMatchObject({ properties: { name: { maxLength: 3 } } });
  });

  it("converts times and JSON values to the format of their database columns", () => {
    const { opensAt, tags, name } = board.fields;
    expect(opensAt.toColumn("2026-01-31T10:30:00+01:00")).toEqual(createdAt);
    expect([opensAt.toColumn(null), tags.toColumn(["a"]), name.toColumn("a")]).toEqual([null, '["a"]', "a"]);
  });
});
