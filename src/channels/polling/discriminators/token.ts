import { z } from "zod";
import { integer, pathText, text } from "../../../event/config-fields.ts";
import { err, ok } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { urlSchema } from "../../pull/request-fields.ts";
import { equalsSchema } from "../config/equals.ts";
import { MAX_KEYS, type Position, PositionError } from "../cursor/position.ts";
import { keyOf, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import { describeFlag, readFlag } from "../pagination/ending.ts";
import { pageRequestSchema } from "../pagination/page-request.ts";
import type { Discriminator, DiscriminatorContext } from "./discriminator.ts";
import { unknownItems } from "./seen.ts";

const MAX_TOKEN_CHARS = 16_384;

const configSchema = z.strictObject({
  by: z
    .literal("token")
    .describe(
      "Each response contains a token, and a request with that token returns the items that are newer. The server keeps track of the position.",
    ),
  path: pathText
    .optional()
    .describe("Path to the next token in the page. Not every page must contain a token."),
  header: z
    .string()
    .max(256)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "is not a valid header name")
    .optional()
    .describe("Response header that contains the next token."),
  as: z
    .enum(["value", "url"])
    .default("value")
    .describe(
      "Type of the token: a value for {{cursor}}, or the full URL of the next request (a delta link).",
    ),
  hasMorePath: pathText
    .optional()
    .describe("Path in the page to a value that is true if the new token returns more items immediately."),
  expiredOn: z
    .strictObject({
      statuses: z
        .array(integer(400, 499))
        .min(1)
        .max(20)
        .describe("Response statuses that mean that the token has expired.")
        .default([410]),
      path: pathText
        .optional()
        .describe(
          "Path in the response body. The token has also expired if the value at this path is `equals`.",
        ),
      equals: equalsSchema.optional().describe("Value at `path` that means that the token has expired."),
    })
    .prefault({})
    .describe("How a response indicates an expired token."),
  first: z
    .strictObject({
      url: urlSchema().describe("URL that returns the token. It must not contain placeholders."),
      path: pathText.describe("Path to the token in the response."),
    })
    .optional()
    .describe(
      "Request that returns the first token, for servers that return no items without a token. It is sent only while no token is known: at the start, and after the token has expired. The channel then publishes the changes since that request, whatever `startAt` says.",
    ),
  onExpired: z
    .enum(["resync", "skip", "stop"])
    .describe(
      "How to handle an expired token. `resync` requests all items again; `dedupe` only recognizes events that it still remembers. `skip` treats all existing items as known. `stop` puts the channel into state `error`.",
    )
    .default("resync"),
});

type TokenConfig = z.output<typeof configSchema>;

const savedSchema = z.strictObject({
  token: z.string().max(MAX_TOKEN_CHARS).optional(),
  next: pageRequestSchema.optional(),
  keys: seenKeysSchema.default([]),
  isPriming: z.boolean().default(false),
});
type Saved = z.input<typeof savedSchema>;

interface TokenOptions extends Pick<DiscriminatorContext, "itemKey" | "order"> {
  readonly path: RulePath | undefined;
  readonly hasMorePath: RulePath | undefined;
}

/**
 * Finds new items with a token from the server. A request with the token returns only items that the server added after it issued the
 * token.
 */
export const token: Discriminator<typeof configSchema> = {
  configSchema,
  cursorKind: ({ as }) => (as === "value" ? "text" : undefined),
  create(config, { paths, itemKey, order, startAt }) {
    const path = paths.ofPage(config.path, "discriminator.path");
    const hasMorePath = paths.ofPage(config.hasMorePath, "discriminator.hasMorePath");
    const options: TokenOptions = { path, hasMorePath, itemKey, order };
    const first: Saved =
      typeof startAt === "object" ? { token: startAt.value } : { isPriming: startAt === "now" };
    const { as, expiredOn } = config;
    const firstPath = paths.ofPage(config.first?.path, "discriminator.first.path");
    return {
      firstToken: config.first && firstPath && { url: config.first.url, path: firstPath },
      expiredOn: { ...expiredOn, path: paths.ofPage(expiredOn.path, "discriminator.expiredOn.path") },
      start: () => createPosition(config, options, first),
      restore(saved) {
        const read = savedSchema.safeParse(saved);
        return read.success ? createPosition(config, options, read.data) : undefined;
      },
      parse(value) {
        const read = shownSchema.safeParse(value);
        if (!read.success)
          return err([{ path: "token", message: `must be a string of 1 to ${MAX_TOKEN_CHARS} characters` }]);
        if (as === "url" && !isHttp(read.data.token))
          return err([{ path: "token", message: "must be an HTTP URL, because `discriminator.as` is url" }]);
        const position: Saved = { token: read.data.token };
        return ok(position);
      },
    };
  },
  show: (saved) => ({ token: savedSchema.parse(saved).token ?? null }),
  check({ as, expiredOn, first, header, path }, { startValue, order, isPaged, placeholders }, refuse) {
    if (startValue !== undefined && as === "url" && !isHttp(startValue))
      refuse("startAt.value", "must be an HTTP URL, because `discriminator.as` is url");
    if ((path === undefined) === (header === undefined)) refuse("discriminator.path", PATH_OR_HEADER);
    if (as === "value" && !placeholders.has("cursor")) refuse("request", NOT_SENT);
    if ((expiredOn.path === undefined) !== (expiredOn.equals === undefined))
      refuse("discriminator.expiredOn.path", "must be set together with `equals`");
    if (first !== undefined && as === "url")
      refuse("discriminator.first", "is only allowed if `as` is value");
    if (first?.url.includes("{{")) refuse("discriminator.first.url", "must not contain placeholders");
    if (order === "descending" && isPaged) refuse("order", READ_TO_THE_END);
  },
};

const PATH_OR_HEADER = "set exactly one of `path` and `header`";
const NOT_SENT = "must contain {{cursor}}, because the server would otherwise never receive the token";
const READ_TO_THE_END =
  "must not be descending with pagination, because pages are published as they arrive until the last one brings a token";

const isHttp = (text: string): boolean => /^https?:\/\//i.test(text);

const shownSchema = z.strictObject({ token: text(MAX_TOKEN_CHARS) });

/**
 * Creates a position that consists of a token and the next page to read with it. Published items are remembered until the server sends a
 * new token. If the next page is gone or no page has a token, reading starts over from the first page and skips the remembered items.
 */
function createPosition(
  { as, header, onExpired }: TokenConfig,
  { hasMorePath, itemKey, order, path }: TokenOptions,
  saved: Saved,
): Position {
  const keys = SeenKeys.read(saved.keys ?? [], Number);
  let token = saved.token;
  let next = saved.next;
  let isPriming = saved.isPriming ?? false;

  function tokenOf(page: Page): string | undefined {
    const value =
      path === undefined ? [page.headers[header?.toLowerCase() ?? ""]].flat()[0] : page.read(path);
    if (value === undefined || value === null || value === "") return undefined;
    const text = typeof value === "string" ? value : undefined;
    const found = as === "url" && text !== undefined ? page.addressOf(text) : text;
    if (found === undefined || found.length > MAX_TOKEN_CHARS) {
      throw new PositionError("token_missing", "The server returned a token that is not valid");
    }
    return found;
  }

  /** Returns a key that includes the item's content, so that a changed item counts as new. */
  const changeKey = (item: PageItem): string => keyOf([itemKey(item), item.contentHash()]);

  /** Value of the placeholder `{{cursor}}`: the newest token, even when reading starts over from the first page. */
  const cursor: Position["cursor"] = () =>
    token === undefined || as === "url" ? undefined : { kind: "text", text: token };

  return {
    cursor,
    head: cursor,
    url: () => (as === "url" ? token : undefined),
    startAt(first) {
      token = first;
      isPriming = false;
    },
    resumeAt: () => next,
    isPriming: () => isPriming,
    remainingCapacity: () => Number.POSITIVE_INFINITY,
    select({ items }) {
      if (isPriming) return [];
      return [
        ...unknownItems(items, order, { itemKey: changeKey, isKnown: (key) => keys.has(key) }).values(),
      ];
    },
    add(items) {
      for (const item of items) keys.add(changeKey(item), WALK);
      keys.forgetFirst(MAX_KEYS);
    },
    reachesKnown: () => false,
    endPage(page, following) {
      const found = tokenOf(page);
      if (found !== undefined) {
        token = found;
        keys.forget(() => true);
      }
      next = following;
      if (next !== undefined) return false;
      if (token === undefined) {
        throw new PositionError("token_missing", "The last page does not contain a token for the next poll");
      }
      if (hasMorePath === undefined) return false;
      const hasMore = readFlag(page, hasMorePath);
      if (hasMore === undefined && page.itemCount > 0) {
        const { text } = hasMorePath;
        throw new PositionError(
          "has_more",
          `\`discriminator.hasMorePath\` (${text}) ${describeFlag(page, hasMorePath)}`,
        );
      }
      return hasMore === true;
    },
    endWalk() {
      next = undefined;
      isPriming = false;
    },
    expire(target) {
      next = undefined;
      if (target === "page") return true;
      if (token === undefined || onExpired === "stop") return false;
      token = undefined;
      keys.forget(() => true);
      isPriming = onExpired === "skip";
      return true;
    },
    save() {
      const written = keys.write();
      const position: Saved = {
        ...(token !== undefined && { token }),
        ...(next !== undefined && { next }),
        ...(written.length > 0 && { keys: written }),
        ...(isPriming && { isPriming: true }),
      };
      return position;
    },
  };
}

/** Stamp of every key. All keys are equal here, because they are forgotten together when a new token arrives. */
const WALK = 0;
