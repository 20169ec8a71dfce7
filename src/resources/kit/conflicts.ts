import { isForeignKeyViolation, isUniqueViolation } from "../../data/database.ts";
import { conflict } from "../../http/errors.ts";

/** Awaits a write. @throws ApiError 409 with `message` when it violates a unique constraint */
export const conflictIfTaken = <T>(message: string, written: Promise<T>): Promise<T> =>
  toConflict(message, isUniqueViolation, written);

/** Awaits a deletion. @throws ApiError 409 with `message` when other rows still refer to the deleted row */
export const conflictIfInUse = <T>(message: string, deleted: Promise<T>): Promise<T> =>
  toConflict(message, isForeignKeyViolation, deleted);

async function toConflict<T>(message: string, is: (error: unknown) => boolean, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } catch (error) {
    if (is(error)) throw conflict(message);
    throw error;
  }
}
