import type { z } from "zod";
import type { ReportIssue } from "../../../event/setting-fields.ts";
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

/** The compiled settings that every discriminator of a channel uses, next to its own settings. */
export interface DiscriminatorContext {
  readonly paths: PathReader;
  readonly itemId: RulePath | undefined;
  readonly versionPath: RulePath | undefined;
  /** Computed from `itemId` and `versionPath`. */
  readonly itemKey: ItemKey;
  readonly order: Order;
  readonly startAt: StartAt;
}

export interface CheckContext {
  /** The `value` in the `startAt` setting, if `startAt` has one. */
  readonly startValue: string | undefined;
  readonly order: Order;
  readonly isPaged: boolean;
  readonly placeholders: Pick<TemplateNames, "has">;
}

export interface DiscriminatorSchema extends z.ZodType<{ readonly by: string }> {
  readonly shape: { readonly by: z.ZodLiteral<string> };
}

/** A strategy for detecting new items. Each strategy has a file in this folder and an entry in `discriminators.ts`. */
export interface Discriminator<S extends DiscriminatorSchema = DiscriminatorSchema> {
  /** Schema of `config.discriminator`, whose `by` is the discriminator's name. */
  readonly settings: S;
  /** Returns the type of value that `{{cursor}}` stands for, or `undefined` if requests cannot use this placeholder. */
  cursorKind(settings: z.output<S>): TemplateValue["kind"] | undefined;
  /** Compiles the settings. Returns `undefined` if a path does not compile. `context.paths` then contains the error. */
  create(settings: z.output<S>, context: DiscriminatorContext): CompiledDiscriminator | undefined;
  /**
   * Converts a stored position to its API form.
   * @throws ZodError when the stored value is not a saved position
   */
  show(saved: unknown): unknown;
  /** Rejects settings that would lose or duplicate items or have no effect. Findings use the names of the channel's settings. */
  check(settings: z.output<S>, context: CheckContext, refuse: ReportIssue): void;
}

/** For discriminators that do not order items, and therefore cannot start at a value. */
export function rejectStartValue({ startValue }: CheckContext, refuse: ReportIssue): void {
  if (startValue !== undefined)
    refuse("startAt.value", "is not supported by this discriminator; use `now` or `earliest`");
}

export interface CompiledDiscriminator {
  /** True if an item is new because of its order key, and not because it was never seen before. */
  readonly isOrdered?: boolean;
  /** Whether each request is conditional, so that the server can respond with 304. */
  readonly isConditional?: boolean;
  /** Describes the error response by which the server reports that it no longer knows the position. */
  readonly expiredOn?: {
    readonly statuses: readonly number[];
    readonly path: RulePath | undefined;
    readonly equals?: string | number | boolean | undefined;
  };
  readonly start: (context: PositionContext) => Position;
  /** Restores a position from `saved`. Returns `undefined` if `save` did not write this value. */
  readonly restore: (saved: unknown, context: PositionContext) => Position | undefined;
  /** Converts a position that was set through the API to the form that `save` writes. Each finding names the invalid field. */
  readonly parse: (value: unknown) => Result<unknown, readonly Finding[]>;
}
