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

/** The settings of the channel beside those of its discriminator, compiled. */
export interface DiscriminatorContext {
  readonly paths: PathReader;
  readonly itemId: RulePath | undefined;
  readonly versionPath: RulePath | undefined;
  /** By `itemId` and `versionPath`. */
  readonly itemKey: ItemKey;
  readonly order: Order;
  readonly startAt: StartAt;
}

/** Other settings of the channel, which those of a discriminator must go together with. */
export interface CheckContext {
  /** The `value` of `startAt`, where it is one. */
  readonly startValue: string | undefined;
  readonly order: Order;
  readonly isPaged: boolean;
  /** The placeholders that the request holds. */
  readonly placeholders: Pick<TemplateNames, "has">;
}

export interface DiscriminatorSchema extends z.ZodType<{ readonly by: string }> {
  readonly shape: { readonly by: z.ZodLiteral<string> };
}

/** One way to tell what is new: a file in this folder and its name in `discriminators.ts`. */
export interface Discriminator<S extends DiscriminatorSchema = DiscriminatorSchema> {
  /** `config.discriminator` of its channels; `by` is its name. */
  readonly settings: S;
  /** The kind of `{{cursor}}` in requests; undefined: there is none. */
  cursorKind(settings: z.output<S>): TemplateValue["kind"] | undefined;
  /** Undefined where one of its paths does not compile, which `context.paths` then tells. */
  create(settings: z.output<S>, context: DiscriminatorContext): CompiledDiscriminator | undefined;
  /** A stored position as a person sees it. @throws ZodError for what no position has saved */
  show(saved: unknown): unknown;
  /** Refuses settings that would lose items, double them, or never do as meant, under the names of the channel's settings. */
  check(settings: z.output<S>, context: CheckContext, refuse: Refuse): void;
}

/** Of a discriminator without an order. */
export function rejectStartValue({ startValue }: CheckContext, refuse: Refuse): void {
  if (startValue !== undefined)
    refuse("startAt.value", "there is no such place where items are in no order: `now` or `earliest`");
}

/** The discriminator of one channel. */
export interface CompiledDiscriminator {
  /** True where the place of an item in an order tells whether it is new. */
  readonly isOrdered?: boolean;
  /** True where each request asks for changes alone (304). */
  readonly isConditional?: boolean;
  /** How an answer says that the server no longer knows the position. */
  readonly expiredOn?: {
    readonly statuses: readonly number[];
    readonly path: RulePath | undefined;
    readonly equals?: string | number | boolean | undefined;
  };
  /** The position of a source that has not been polled yet. */
  readonly start: (context: PositionContext) => Position;
  /** Undefined for what `save` has not written. */
  readonly restore: (saved: unknown, context: PositionContext) => Position | undefined;
  /** A position that a person has set, as `save` would write it; findings name the field. */
  readonly parse: (value: unknown) => Result<unknown, readonly Finding[]>;
}
