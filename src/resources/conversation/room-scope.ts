import type { Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/errors.ts";
import { getRow } from "../kit/references.ts";

export const ROOMS = { table: "rooms", prefix: "room", words: "room" } as const;

/** Returns the room and locks it against changes until the transaction ends. @throws ApiError 404 if the room does not exist */
export const lockRoom = (trx: Trx, caller: Caller, id: string): Promise<Row<"rooms">> =>
  getRow(trx, caller, ROOMS, id, "share");

/** Returns and locks a room that accepts messages. @throws ApiError 404 if the room does not exist; 409 if it accepts no messages */
export async function lockOpenRoom(trx: Trx, caller: Caller, id: string): Promise<Row<"rooms">> {
  const room = await lockRoom(trx, caller, id);
  if (!room.allowMessages) throw conflict("The room accepts no messages, because allowMessages is false.");
  return room;
}
