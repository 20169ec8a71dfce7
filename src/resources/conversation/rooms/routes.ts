import { sql } from "kysely";
import type { Row } from "../../../data/tables.ts";
import { conflict } from "../../../http/errors.ts";
import { readNewestPerOwner } from "../../kit/newest-per-owner.ts";
import { ACCOUNTS, SPACES } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { loadEmbedded } from "../load-embedded.ts";
import { conversation, room } from "../schema.ts";

export const rooms = standardResource({
  path: "/rooms",
  tag: "Rooms",
  name: "room",
  table: "rooms",
  shape: room,
  references: { ownerId: ACCOUNTS, spaceId: SPACES },
  inUse: {
    when: "the room has conversations",
    message: "The room has conversations, so it cannot be deleted.",
  },
  async prepare({ before }) {
    if (before?.immutable) throw conflict("The room is immutable, so it cannot be changed.");
    return {};
  },
  async inside(db, rows) {
    const ids = rows.map(({ id }) => id);
    const parts = { table: "conversations", owner: "room_id", columns: sql`*` };
    const conversations = await readNewestPerOwner<Row<"conversations">>(db, parts, ids);
    const inside = await loadEmbedded(db, "room_id", ids);
    return ({ id }) => {
      const { items, total } = conversations(id);
      const begun = items.map((row) => conversation.render(row));
      return { ...inside(id), conversations: begun, conversationCount: total };
    };
  },
  notes: {
    update: {
      description: "Participants, conversations and messages have their own routes.",
      conflict: "the room is immutable",
    },
    delete: { description: "The room's participants and its own messages are deleted too." },
  },
});
