import { isForeignKeyViolation, isUniqueViolation } from "../../data/database.ts";
import { conflict } from "../../http/errors.ts";

/** Turns a unique violation of a write into an error response. @throws ApiError 409 with `message` */
export const conflictIfTaken = <T>(message: string, written: Promise<T>): Promise<T> =>
  toConflict(message, isUniqueViolation, written);

/** Turns a foreign key violation of a deletion into an error response. @throws ApiError 409 with `message` */
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
