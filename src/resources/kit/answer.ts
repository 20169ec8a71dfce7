import type { z } from "zod";
import type { Shown } from "../../http/fields.ts";
import type { Listed } from "../../http/page.ts";

/** A list as `answerList` gives it: a bare array, the full count in `X-Total-Count`. */
export interface ListAnswer<S extends z.ZodType = z.ZodType> {
  readonly kind: "list";
  readonly of: S;
}

/** Not JSON: a page, a stream. The handler answers with a `Response` of its own. */
export interface NonJsonAnswer {
  readonly kind: "other";
  readonly contentType: string;
  readonly description: string;
  /** When it answers 400, in the same form. */
  readonly refusal?: string;
}

/** A route's success, always a 200. */
export type Answer = z.ZodType | ListAnswer | NonJsonAnswer;

export const listOf = <S extends z.ZodType>(of: S): ListAnswer<S> => ({ kind: "list", of });

export const nonJsonAnswer = (contentType: string, description: string, refusal?: string): NonJsonAnswer => ({
  kind: "other",
  contentType,
  description,
  ...(refusal !== undefined && { refusal }),
});

export const isList = (answer: Answer): answer is ListAnswer => "kind" in answer && answer.kind === "list";
export const isNonJson = (answer: Answer): answer is NonJsonAnswer =>
  "kind" in answer && answer.kind === "other";

/** A handler returns this for that answer. A `Response` goes out as it is. */
export type HandlerResult<A extends Answer> =
  | Response
  | (A extends ListAnswer<infer S>
      ? Listed<Shown<z.output<S>>>
      : A extends z.ZodType
        ? Shown<z.output<A>>
        : never);
