import type { z } from "zod";
import type { ReportIssue } from "../../../event/config-fields.ts";
import type { Finding } from "../../../lib/errors.ts";
import type { Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PathReader } from "../config/paths.ts";
import type { StartAt } from "../config/start-at.ts";
import type { Position, PositionContext } from "../cursor/position.ts";
import type { ItemKey } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import type { polledItemFields } from "../profile.ts";
import type { TemplateNames, TemplateValue } from "../request/template-values.ts";

export type Order = z.output<typeof polledItemFields.order>;

/** Input for every strategy for detecting new items, in addition to the settings of the strategy itself. */
export interface DiscriminatorContext {
  readonly paths: PathReader;
  readonly itemId: RulePath | undefined;
  readonly versionPath: RulePath | undefined;
  /** Returns the key of an item, computed from the settings `itemId` and `versionPath`. */
  readonly itemKey: ItemKey;
  readonly order: Order;
  readonly startAt: StartAt;
  /** Minimum age of an item that may be published, in ms. Only the `timestamp` discriminator knows the age. */
  readonly settleMs: number;
}

export interface CheckContext {
  /** Value of the `startAt` setting, if the channel starts at a value. */
  readonly startValue: string | undefined;
  readonly order: Order;
  readonly isPaged: boolean;
  readonly placeholders: Pick<TemplateNames, "has">;
}

export interface DiscriminatorSchema extends z.ZodType<{ readonly by: string }> {
  readonly shape: { readonly by: z.ZodLiteral<string> };
}

/** A strategy for detecting new items. To add one, create a file in this folder and list it in `discriminators.ts`. */
export interface Discriminator<S extends DiscriminatorSchema = DiscriminatorSchema> {
  /** Schema of `config.discriminator`, whose `by` is the discriminator's name. */
  readonly configSchema: S;
  /** Returns the type of value that `{{cursor}}` stands for, or `undefined` if requests cannot use this placeholder. */
  cursorKind(config: z.output<S>): TemplateValue["kind"] | undefined;
  /** Compiles the config. Returns `undefined` if a path does not compile. `context.paths` then contains the error. */
  create(config: z.output<S>, context: DiscriminatorContext): CompiledDiscriminator | undefined;
  /**
   * Converts a stored position to its API form.
   * @throws ZodError when the stored value is not a saved position
   */
  show(saved: unknown): unknown;
  /** Rejects settings that would lose items, duplicate items or have no effect. Each error names the setting. */
  check(config: z.output<S>, context: CheckContext, refuse: ReportIssue): void;
}

/** Rejects `startAt` with a value, for strategies that cannot compare items with a value. */
export function rejectStartValue({ startValue }: CheckContext, refuse: ReportIssue): void {
  if (startValue !== undefined)
    refuse("startAt.value", "is not supported by this discriminator; use `now` or `earliest`");
}

export interface CompiledDiscriminator {
  /** Whether items are new because their order key is higher, and not because they were never seen. */
  readonly isOrdered?: boolean;
  /** Returns the time of an item, in ms since the Unix epoch. `undefined` if the item has no valid time. */
  readonly timeOf?: (item: PageItem, nowMs: number) => number | undefined;
  /** Whether requests are conditional, so that the server can respond with 304. */
  readonly isConditional?: boolean;
  /** The error response with which the server reports that it no longer knows the position. */
  readonly expiredOn?: {
    readonly statuses: readonly number[];
    readonly path: RulePath | undefined;
    readonly equals?: string | number | boolean | undefined;
  };
  /** Request that returns the first token. Sent only while no token is known. */
  readonly firstToken?: { readonly url: string; readonly path: RulePath } | undefined;
  readonly start: (context: PositionContext) => Position;
  /** Restores a position that `save` returned. Returns `undefined` if `saved` has another form. */
  readonly restore: (saved: unknown, context: PositionContext) => Position | undefined;
  /** Converts a position from the API to the form that `save` returns. Each error names the invalid field. */
  readonly parse: (value: unknown) => Result<unknown, readonly Finding[]>;
}
