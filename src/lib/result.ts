/** An expected success or failure as a value. A broken world (Redis gone, a bug) is thrown instead. */
export type Result<T, E> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

export const err = <E>(error: E): { readonly ok: false; readonly error: E } => ({ ok: false, error });

/** The value of what was checked when it was written. @throws Error that names it */
export function unwrap<T>(result: Result<T, string>, name: string): T {
  if (!result.ok) throw new Error(`${name} ${result.error}`);
  return result.value;
}
