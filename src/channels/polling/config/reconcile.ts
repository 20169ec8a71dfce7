import { hash } from "node:crypto";
import { z } from "zod";
import { channelUidSchema } from "../../../event/channel.ts";
import { integer, type ReportIssue, text } from "../../../event/config-fields.ts";
import type { Values } from "../../../event/values.ts";
import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { readBody } from "../../../normalize/body/bodies.ts";
import { exceedsDepth } from "../../../normalize/body/items.ts";
import { createPathReader, type RulePath } from "../../../normalize/compile.ts";
import { ItemReader } from "../../../normalize/item-reader.ts";
import { ITEM_ROOT } from "../../../normalize/profile.ts";
import type { PathSyntax } from "./paths.ts";

const MAX_BODY_DEPTH = 16;
/** Maximum number of nodes that the paths of `as` together may visit per item. */
const ITEM_PATH_BUDGET = 200_000;
const DEFAULT_SETTLE_SECONDS = 300;

const valuesSchema = z.record(text(256), text(4096));

export const reconcileFields = {
  reconciles: channelUidSchema
    .optional()
    .describe(
      "Uid of a webhook channel of the same app. Each item is turned into the webhook's delivery, and passes through that channel's definitions. Events that the channel missed are published on its topics. Requires the timestamp discriminator.",
    ),
  as: z
    .strictObject({
      headers: valuesSchema
        .optional()
        .describe(
          "Headers of the webhook. A value that begins with `$` is a path into the item, any other value is literal.",
        ),
      query: valuesSchema
        .optional()
        .describe("Query parameters of the webhook, with the same kind of values."),
      body: z
        .union([
          text(1024).regex(/^\$/, "must be a path that begins with $, or an object"),
          z.record(z.string(), z.unknown()),
        ])
        .refine((body) => !exceedsDepth(body, MAX_BODY_DEPTH), {
          message: `must not be nested deeper than ${MAX_BODY_DEPTH} levels`,
        })
        .optional()
        .describe(
          "JSON body of the webhook: a path into the item, or an object in which each text that begins with `$` is such a path. Default: the item itself.",
        ),
    })
    .optional()
    .describe("How to build the webhook's delivery from an item. Only with `reconciles`."),
  settleSeconds: integer(0, 86_400)
    .optional()
    .describe(
      `Seconds that the webhook has to arrive. Younger items are neither compared nor published, and the cursor does not pass them. Only with \`reconciles\`. Default: ${DEFAULT_SETTLE_SECONDS}.`,
    ),
  match: z
    .enum(["identity", "id"])
    .optional()
    .describe(
      "How an item is recognized as received. `identity`: by its id, and other data is a conflict as `dedupe.onConflict` of the webhook channel says. `id`: by its id alone, for providers whose API and webhook differ in their data. Only with `reconciles`. Default: `identity`.",
    ),
} as const;

const fieldsSchema = z.object(reconcileFields);
type ReconcileConfig = z.output<typeof fieldsSchema>;

/** Settings that make a poll find the events that a webhook channel missed. */
export interface ReconcilePlan {
  readonly channelUid: string;
  readonly settleMs: number;
  readonly match: "identity" | "id";
  /** Names of the headers and query parameters that the built deliveries have. Header names are in lower case. */
  readonly supplies: { readonly headers: readonly string[]; readonly query: readonly string[] };
  /** Hash of the settings that decide which ids the items get. */
  readonly settings: string;
  /** Builds the parts of the webhook's delivery from an item. @throws PathBudgetError */
  readonly build: (itemText: string) => Result<BuiltDelivery, string>;
}

export interface BuiltDelivery {
  readonly headers: Values;
  readonly query: Values;
  readonly body: string;
}

type Read = (reader: ItemReader) => string | undefined;

/** Compiles the settings. Returns `undefined` if the channel does not reconcile. */
export function compileReconcile(
  { as = {}, match = "identity", reconciles, settleSeconds = DEFAULT_SETTLE_SECONDS }: ReconcileConfig,
  syntax: PathSyntax,
  findings: Finding[],
): ReconcilePlan | undefined {
  if (reconciles === undefined) return undefined;
  const compilePath = createPathReader({ syntax, item: ITEM_ROOT, named: new Map() }, findings);

  const compileText = (value: string, at: string, read: (path: RulePath) => Read): Read => {
    if (!value.startsWith("$")) return () => value;
    const path = compilePath(value, at);
    return path === undefined ? () => undefined : read(path);
  };
  const compileValues = (values: Readonly<Record<string, string>> = {}, at: string) =>
    Object.entries(values).map(
      ([name, value]) => [name, compileText(value, `${at}.${name}`, readText)] as const,
    );

  function compileJson(value: unknown, at: string): Read {
    if (typeof value === "string" && value.startsWith("$")) return compileText(value, at, readJson);
    if (typeof value !== "object" || value === null) return () => JSON.stringify(value);
    if (Array.isArray(value)) {
      const elements = value.map((element, index) => compileJson(element, `${at}[${index}]`));
      return (reader) => `[${elements.map((read) => read(reader) ?? "null").join(",")}]`;
    }
    const members = Object.entries(value).map(
      ([name, member]) => [JSON.stringify(name), compileJson(member, `${at}.${name}`)] as const,
    );
    return (reader) =>
      `{${members
        .flatMap(([name, read]) => {
          const json = read(reader);
          return json === undefined ? [] : `${name}:${json}`;
        })
        .join(",")}}`;
  }

  const headers = compileValues(as.headers, "as.headers").map(
    ([name, read]) => [name.toLowerCase(), read] as const,
  );
  const query = compileValues(as.query, "as.query");
  const body = compileJson(as.body ?? "$", "as.body");
  return {
    channelUid: reconciles,
    settleMs: settleSeconds * 1000,
    match,
    supplies: { headers: headers.map(([name]) => name), query: query.map(([name]) => name) },
    settings: hash("sha256", JSON.stringify([reconciles, as]), "base64url").slice(0, 22),
    build(itemText) {
      const item = readBody(Buffer.from(itemText), "application/json");
      if (!item.ok) return err(item.error.detail);
      const { value, json } = item.value;
      const delivery = { method: "POST", headers: {}, query: {}, body: item.value.bytes, arrivedAtMs: 0 };
      const context = { delivery, body: item.value, item: { index: 0, value, json, isBody: true } };
      const reader = new ItemReader(context, { left: ITEM_PATH_BUDGET });
      return ok({
        headers: fill([["content-type", () => "application/json"], ...headers], reader),
        query: fill(query, reader),
        body: body(reader) ?? "null",
      });
    },
  };
}

function fill(values: readonly (readonly [string, Read])[], reader: ItemReader): Values {
  const filled: Record<string, string> = Object.create(null);
  for (const [name, read] of values) {
    const value = read(reader);
    if (value !== undefined) filled[name] = value;
  }
  return filled;
}

const readText =
  (path: RulePath): Read =>
  (reader) => {
    const [value, ...more] = reader.values(path);
    if (more.length > 0) return undefined;
    return typeof value === "string" || typeof value === "boolean" ? String(value) : undefined;
  };

const readJson =
  (path: RulePath): Read =>
  (reader) =>
    reader.payload(path)?.data;

/** Rejects settings that have no effect, or with which events would be lost or published twice. */
export function checkReconcile(
  config: ReconcileConfig & { readonly expectEverySeconds?: number | undefined },
  discriminator: string,
  refuse: ReportIssue,
): void {
  if (config.reconciles === undefined) {
    for (const name of ["as", "settleSeconds", "match"] as const)
      if (config[name] !== undefined) refuse(name, "requires `reconciles`");
    return;
  }
  if (discriminator !== "timestamp")
    refuse(
      "discriminator.by",
      "must be timestamp with `reconciles`, because the age of an item decides whether it may be published",
    );
  if (config.expectEverySeconds !== undefined)
    refuse(
      "expectEverySeconds",
      "must not be set with `reconciles`, because the events belong to the webhook channel; set it there",
    );
}
