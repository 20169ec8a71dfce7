import type { z } from "zod";
import type { Refuse } from "../../../event/setting-fields.ts";
import type { Finding } from "../../../lib/errors.ts";
import type { Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { Position, PositionContext } from "../cursor/position.ts";
import type { ItemKey } from "../cursor/seen-keys.ts";
import type { polledItemSettings } from "../profile.ts";
import type { TemplateNames, TemplateValue } from "../request/template-values.ts";
import type { PathReader } from "../settings/paths.ts";
import type { StartAt } from "../settings/start-at.ts";

export type Order = z.output<typeof polledItemSettings.order>;

/** The channel's compiled settings outside of `discriminator`. */
export interface DiscriminatorContext {
  readonly paths: PathReader;
  readonly itemId: RulePath | undefined;
  readonly versionPath: RulePath | undefined;
  /** Identifies items by `itemId` and `versionPath`. */
  readonly itemKey: ItemKey;
  readonly order: Order;
  readonly startAt: StartAt;
}

/** Other settings of the channel, for checks against those of the discriminator. */
export interface CheckContext {
  /** The `value` in `startAt`, if it has one. */
  readonly startValue: string | undefined;
  readonly order: Order;
  readonly isPaged: boolean;
  /** The placeholders used in the request. */
  readonly placeholders: Pick<TemplateNames, "has">;
}

export interface DiscriminatorSchema extends z.ZodType<{ readonly by: string }> {
  readonly shape: { readonly by: z.ZodLiteral<string> };
}

/** A strategy for detecting new items. Each one is a file in this folder and an entry in `discriminators.ts`. */
export interface Discriminator<S extends DiscriminatorSchema = DiscriminatorSchema> {
  /** Schema of `config.discriminator`. `by` is the discriminator's name. */
  readonly settings: S;
  /** The kind of the `{{cursor}}` placeholder. `undefined` if the request cannot use it. */
  cursorKind(settings: z.output<S>): TemplateValue["kind"] | undefined;
  /** Returns `undefined` if a path does not compile. `context.paths` holds the finding. */
  create(settings: z.output<S>, context: DiscriminatorContext): CompiledDiscriminator | undefined;
  /**
   * Converts a stored position to its API form.
   * @throws ZodError when the stored value is not a saved position
   */
  show(saved: unknown): unknown;
  /** Rejects settings that would lose or duplicate items or have no effect. Findings use the names of the channel's settings. */
  check(settings: z.output<S>, context: CheckContext, refuse: Refuse): void;
}

/** For discriminators that do not order items. */
export function rejectStartValue({ startValue }: CheckContext, refuse: Refuse): void {
  if (startValue !== undefined)
    refuse("startAt.value", "is not supported by this discriminator; use `now` or `earliest`");
}

/** The discriminator of one channel. */
export interface CompiledDiscriminator {
  /** Whether an item's order decides if it is new. */
  readonly isOrdered?: boolean;
  /** Whether each request is conditional, so that the server can respond with 304. */
  readonly isConditional?: boolean;
  /** How a response indicates that the server no longer knows the position. */
  readonly expiredOn?: {
    readonly statuses: readonly number[];
    readonly path: RulePath | undefined;
    readonly equals?: string | number | boolean | undefined;
  };
  /** Creates the position of a source that was never polled. */
  readonly start: (context: PositionContext) => Position;
  /** Returns `undefined` if `saved` was not written by `save`. */
  readonly restore: (saved: unknown, context: PositionContext) => Position | undefined;
  /** Converts a position set through the API to the form that `save` writes. Each finding names the invalid field. */
  readonly parse: (value: unknown) => Result<unknown, readonly Finding[]>;
}
