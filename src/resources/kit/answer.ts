import type { z } from "zod";
import type { Shown } from "../../http/fields.ts";
import type { Listed } from "../../http/page.ts";

/** A list response: a bare JSON array, with the total count in the `X-Total-Count` header. */
export interface ListAnswer<S extends z.ZodType = z.ZodType> {
  readonly kind: "list";
  readonly of: S;
}

/** A response that is not JSON, such as an HTML page or an event stream. The handler builds the `Response`. */
export interface NonJsonAnswer {
  readonly kind: "other";
  readonly contentType: string;
  readonly description: string;
  /** Description of the 400 response, which has the same content type as the successful response. */
  readonly refusal?: string;
}

/** Successful response of a route, always with status 200. */
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

/** Return type of a handler whose route declares the response `A`. A `Response` is sent unchanged. */
export type HandlerResult<A extends Answer> =
  | Response
  | (A extends ListAnswer<infer S>
      ? Listed<Shown<z.output<S>>>
      : A extends z.ZodType
        ? Shown<z.output<A>>
        : never);
