import { z } from "zod";
import { id, type Shown } from "../../http/fields.ts";
import { times } from "../kit/fields.ts";

export const permissionSchema = z
  .object({
    id: id("perm"),
    name: z.string().meta({ example: "apps.read" }),
    description: z.string(),
    organizationId: id("org"),
    ...times,
  })
  .meta({
    id: "Permission",
    description:
      "An allowed operation. The name is the first noun of a path, followed by `.read` or `.write`.",
  });
export type Permission = Shown<z.output<typeof permissionSchema>>;
