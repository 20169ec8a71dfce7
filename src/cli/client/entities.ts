/** Objects of the API as its responses contain them, declared by the schemas of the resources. */
import type { z } from "zod";
import type { app } from "../../resources/apps/apps/schema.ts";
import type { eventSchema } from "../../resources/events/events/schema.ts";
import type { apiKey } from "../../resources/iam/schema.ts";
import type { EntityOf } from "../../resources/kit/shape.ts";

export type { AppSummary } from "../../resources/apps/apps/summaries.ts";
export type App = EntityOf<typeof app>;
export type ApiKey = EntityOf<typeof apiKey>;
export type ApiEvent = z.output<typeof eventSchema>;
