import { sql } from "kysely";
import type { Row } from "../../../data/tables.ts";
import { conflict } from "../../../http/problem.ts";
import { readNewestPerOwner } from "../../kit/newest-per-owner.ts";
import { ACCOUNTS, SPACES } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { conversation, room } from "../conversation-entities.ts";
import { insideOf } from "../inside.ts";

/** Rooms: where conversations take place. */
export const rooms = standardResource({
  path: "/rooms",
  tag: "Rooms",
  name: "room",
  table: "rooms",
  shape: room,
  references: { ownerId: ACCOUNTS, spaceId: SPACES },
  inUse: { when: "it has conversations", message: "The room has conversations." },
  async prepare({ before }) {
    if (before?.immutable) throw conflict("The room is immutable.");
    return {};
  },
  async inside(db, rows) {
    const ids = rows.map(({ id }) => id);
    const parts = { table: "conversations", owner: "room_id", columns: sql`*` };
    const conversations = await readNewestPerOwner<Row<"conversations">>(db, parts, ids);
    const inside = await insideOf(db, "room_id", ids);
    return ({ id }) => {
      const { items, total } = conversations(id);
      const begun = items.map((row) => conversation.render(row));
      return { ...inside(id), conversations: begun, conversationCount: total };
    };
  },
  notes: {
    update: {
      description: "Participants, conversations and messages are no part of the room itself.",
      conflict: "it is immutable",
    },
    delete: { description: "Its participants, and what was said in the room itself, go with it." },
  },
});
