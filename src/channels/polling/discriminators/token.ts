import { z } from "zod";
import type { Finding } from "../../../lib/errors.ts";
import { err, ok } from "../../../lib/result.ts";
import { integer, pathText, text } from "../../../lib/setting-fields.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { keyOf } from "../cursor/item-key.ts";
import { MAX_KEYS, type Position, PositionError } from "../cursor/position.ts";
import { SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import { type PageRequest, pageRequestSchema } from "../pagination/page-request.ts";
import { isTrue } from "../pagination/pagination.ts";
import type { TemplateValue } from "../request/template-values.ts";
import type { Discriminator, DiscriminatorContext } from "./discriminator.ts";

const MAX_TOKEN_CHARS = 16_384;

const settings = z.strictObject({
  by: z
    .literal("token")
    .describe(
      "The server keeps track: each answer brings a token that stands for all that was answered so far. New is what it answers to that.",
    ),
  path: pathText
    .optional()
    .describe("A path over the page that yields the next token, where the page has one."),
  header: z
    .string()
    .max(256)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "is not the name of a header")
    .optional()
    .describe("The header of the answer that holds the next token."),
  as: z
    .enum(["value", "url"])
    .default("value")
    .describe(
      "What it is: a value, for {{cursor}}, or the whole address of the next request (a delta link).",
    ),
  hasMorePath: pathText
    .optional()
    .describe("A path over the page that yields true where there is more at once by the new token."),
  expiredOn: z
    .strictObject({
      statuses: z.array(integer(400, 499)).min(1).max(20).default([410]).describe("By its status."),
      path: pathText.optional().describe("Or by what this path over its body yields …"),
      equals: z.union([z.string(), z.number(), z.boolean()]).optional().describe("… if it is this value."),
    })
    .prefault({})
    .describe("How an answer says that the token is no longer known."),
  onExpired: z
    .enum(["resync", "skip", "stop"])
    .default("resync")
    .describe(
      "What to do then: ask for all again, of which `dedupe` recognizes what its window still remembers; take all that is there as known; or stop the channel with an error.",
    ),
});

type TokenSettings = z.output<typeof settings>;

const savedSchema = z.strictObject({
  token: z.string().max(MAX_TOKEN_CHARS).optional(),
  next: pageRequestSchema.optional(),
  keys: seenKeysSchema.default([]),
  isPriming: z.boolean().default(false),
});
type Saved = z.input<typeof savedSchema>;

interface TokenOptions extends Pick<DiscriminatorContext, "itemKey" | "order" | "startAt"> {
  readonly path: RulePath | undefined;
  readonly hasMorePath: RulePath | undefined;
}

/** The server keeps track: its token stands for all that it has answered. */
export const token: Discriminator<typeof settings> = {
  settings,
  cursorKind: ({ as }) => (as === "value" ? "text" : undefined),
  create(settings, { paths, itemKey, order, startAt }) {
    const path = paths.ofPage(settings.path, "discriminator.path");
    const hasMorePath = paths.ofPage(settings.hasMorePath, "discriminator.hasMorePath");
    const options: TokenOptions = { path, hasMorePath, itemKey, order, startAt };
    const first: Saved =
      typeof startAt === "object" ? { token: startAt.value } : { isPriming: startAt === "now" };
    const { as, expiredOn } = settings;
    return {
      expiredOn: { ...expiredOn, path: paths.ofPage(expiredOn.path, "discriminator.expiredOn.path") },
      start: () => new TokenPosition(settings, options, first),
      restore(saved) {
        const read = savedSchema.safeParse(saved);
        return read.success ? new TokenPosition(settings, options, read.data) : undefined;
      },
      parse(value) {
        const read = shownSchema.safeParse(value);
        if (!read.success)
          return err([{ path: "token", message: `must be a text of 1 to ${MAX_TOKEN_CHARS} characters` }]);
        if (as === "url" && !isHttp(read.data.token))
          return err([
            { path: "token", message: "must be an address of HTTP, as `discriminator.as` is url" },
          ]);
        const position: Saved = { token: read.data.token };
        return ok(position);
      },
    };
  },
  show: (saved) => ({ token: savedSchema.parse(saved).token ?? null }),
  check({ as, expiredOn, header, path }, { startValue, order, isPaged, placeholders }) {
    const findings: Finding[] = [];
    if (startValue !== undefined && as === "url" && !isHttp(startValue))
      findings.push({ path: "startAt.value", message: "is no address of HTTP" });
    if ((path === undefined) === (header === undefined))
      findings.push({ path: "discriminator.path", message: PATH_OR_HEADER });
    if (as === "value" && !placeholders.has("cursor")) findings.push({ path: "request", message: NOT_SENT });
    if ((expiredOn.path === undefined) !== (expiredOn.equals === undefined))
      findings.push({
        path: "discriminator.expiredOn.path",
        message: "goes with `equals`, and that with it",
      });
    if (order === "descending" && isPaged) findings.push({ path: "order", message: READ_TO_THE_END });
    return findings;
  },
};

const PATH_OR_HEADER = "the token comes by `path` or by `header`, one of the two";
const NOT_SENT = "tells the server no token: {{cursor}} must stand somewhere in it";
const READ_TO_THE_END =
  "pages are read to their end before there is a new token, and published as they come: leave it as ascending";

const isHttp = (text: string): boolean => /^https?:\/\//i.test(text);

const shownSchema = z.strictObject({ token: text(MAX_TOKEN_CHARS) });

/**
 * A token, and the place in the walk over the pages that it has begun. What was published is remembered until there is a new token:
 * where the pages can no longer be gone on with, or bring none, the walk begins anew and leaves that out.
 */
class TokenPosition implements Position {
  readonly #settings: TokenSettings;
  readonly #options: TokenOptions;
  readonly #keys: SeenKeys<number>;
  readonly room = Number.POSITIVE_INFINITY;
  #token: string | undefined;
  #next: PageRequest | undefined;
  #isPriming: boolean;

  constructor(settings: TokenSettings, options: TokenOptions, saved: Saved) {
    this.#settings = settings;
    this.#options = options;
    this.#token = saved.token;
    this.#next = saved.next;
    this.#keys = SeenKeys.read(saved.keys ?? [], Number);
    this.#isPriming = saved.isPriming ?? false;
  }

  get cursor(): TemplateValue | undefined {
    return this.#token === undefined || this.#settings.as === "url"
      ? undefined
      : { kind: "text", text: this.#token };
  }

  /** A walk that begins anew begins with the newest token. */
  get head(): TemplateValue | undefined {
    return this.cursor;
  }

  get url(): string | undefined {
    return this.#settings.as === "url" ? this.#token : undefined;
  }

  get resumeAt(): PageRequest | undefined {
    return this.#next;
  }

  get isPriming(): boolean {
    return this.#isPriming;
  }

  select({ items }: Page): readonly PageItem[] {
    if (this.#isPriming) return [];
    const fresh = new Map<string, PageItem>();
    for (const item of this.#options.order === "descending" ? items.toReversed() : items) {
      const key = this.#keyOf(item);
      if (!this.#keys.has(key) && !fresh.has(key)) fresh.set(key, item);
    }
    return [...fresh.values()];
  }

  add(items: readonly PageItem[]): void {
    for (const item of items) this.#keys.add(this.#keyOf(item), WALK);
    this.#keys.forgetFirst(MAX_KEYS);
  }

  reachesKnown(): boolean {
    return false;
  }

  endPage(page: Page, next: PageRequest | undefined): boolean {
    const token = this.#tokenOf(page);
    if (token !== undefined) {
      this.#token = token;
      this.#keys.forget(() => true);
    }
    this.#next = next;
    if (next !== undefined) return false;
    if (this.#token === undefined) {
      throw new PositionError("token_missing", "The last page brings no token, by which it could be gone on");
    }
    const { hasMorePath } = this.#options;
    return hasMorePath !== undefined && isTrue(page.read(hasMorePath));
  }

  endWalk(): void {
    this.#next = undefined;
    this.#isPriming = false;
  }

  expire(what: "page" | "position"): boolean {
    this.#next = undefined;
    if (what === "page") return true;
    if (this.#token === undefined || this.#settings.onExpired === "stop") return false;
    this.#token = undefined;
    this.#keys.forget(() => true);
    this.#isPriming = this.#settings.onExpired === "skip";
    return true;
  }

  save(): Saved {
    const keys = this.#keys.write();
    return {
      ...(this.#token !== undefined && { token: this.#token }),
      ...(this.#next !== undefined && { next: this.#next }),
      ...(keys.length > 0 && { keys }),
      ...(this.#isPriming && { isPriming: true }),
    };
  }

  #tokenOf(page: Page): string | undefined {
    const { as, header } = this.#settings;
    const { path } = this.#options;
    const value =
      path === undefined ? [page.headers[header?.toLowerCase() ?? ""]].flat()[0] : page.read(path);
    if (value === undefined || value === null || value === "") return undefined;
    const text = typeof value === "string" ? value : undefined;
    const token = as === "url" && text !== undefined ? page.addressOf(text) : text;
    if (token === undefined || token.length > MAX_TOKEN_CHARS) {
      throw new PositionError("token_missing", "What stands in the place of the token is none");
    }
    return token;
  }

  /** An item that has changed since is another one, whatever its id. */
  #keyOf(item: PageItem): string {
    return keyOf([this.#options.itemKey(item), item.contentHash()]);
  }
}

/** All keys are of one walk. */
const WALK = 0;
