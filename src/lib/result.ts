/**
 * Result of an operation that can fail in expected ways. Unexpected failures, such as a bug or an unavailable Redis, are thrown.
 */
export type Result<T, E> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

export const err = <E>(error: E): { readonly ok: false; readonly error: E } => ({ ok: false, error });

/**
 * Returns the value of a result that cannot be an error, because its input was validated before.
 *
 * @throws Error with `name` if the result is an error nevertheless
 */
export function unwrap<T>(result: Result<T, string>, name: string): T {
  if (!result.ok) throw new Error(`${name} ${result.error}`);
  return result.value;
}
