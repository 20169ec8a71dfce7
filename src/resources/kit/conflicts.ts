import { isForeignKeyViolation, isUniqueViolation } from "../../data/database.ts";
import { conflict } from "../../http/problem.ts";

/** @throws ApiError 409 with that message, when the database has a row like the one that is written */
export const conflictIfTaken = <T>(message: string, written: Promise<T>): Promise<T> =>
  toConflict(message, isUniqueViolation, written);

/** @throws ApiError 409 with that message, when other rows refer to the one that is deleted */
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
