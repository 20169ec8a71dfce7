import type { z } from "zod";
import type { Shown } from "../../http/fields.ts";
import type { Listed } from "../../http/page.ts";

/** A list response. The body is a JSON array, and the `X-Total-Count` header has the total number of items. */
export interface ListAnswer<S extends z.ZodType = z.ZodType> {
  readonly kind: "list";
  readonly of: S;
  /** Whether the list is paged by a cursor, newest item first. The `X-Next-Cursor` header then has the cursor of the next page. */
  readonly hasCursor?: true;
  /** Whether the `X-Scanned-Count` header has the number of items that were read for the page. */
  readonly isScanned?: true;
}

/** A response without a JSON body, such as an HTML page or an event stream. The route's handler creates the `Response`. */
export interface NonJsonAnswer {
  readonly kind: "other";
  readonly contentType: string;
  readonly description: string;
  /** Description of the 400 response, for a route whose 400 has the same content type as its 200. */
  readonly refusal?: string;
}

/** Declares the 200 response of a route, which is the only success status. */
export type Answer = z.ZodType | ListAnswer | NonJsonAnswer;

export const listOf = <S extends z.ZodType>(of: S): ListAnswer<S> => ({ kind: "list", of });

export const newestOf = <S extends z.ZodType>(of: S): ListAnswer<S> => ({ ...listOf(of), hasCursor: true });

export const scannedOf = <S extends z.ZodType>(of: S): ListAnswer<S> => ({
  ...newestOf(of),
  isScanned: true,
});

export const nonJsonAnswer = (contentType: string, description: string, refusal?: string): NonJsonAnswer => ({
  kind: "other",
  contentType,
  description,
  ...(refusal !== undefined && { refusal }),
});

export const isList = (answer: Answer): answer is ListAnswer => "kind" in answer && answer.kind === "list";
export const isNonJson = (answer: Answer): answer is NonJsonAnswer =>
  "kind" in answer && answer.kind === "other";

/** Return type of a handler, derived from the response that its route declares. A `Response` object is sent as it is. */
export type HandlerResult<A extends Answer> =
  | Response
  | (A extends ListAnswer<infer S>
      ? Listed<Shown<z.output<S>>>
      : A extends z.ZodType
        ? Shown<z.output<A>>
        : never);
