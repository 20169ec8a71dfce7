import { z } from "zod";
import type { Resource } from "../resource.ts";
import { definePublicRoute } from "../route.ts";

export const openApi: Resource = {
  tag: "Operations",
  routes: ({ openApiText }) => [
    definePublicRoute({
      at: "GET /openapi.json",
      operation: "getOpenApi",
      summary: "Get the OpenAPI document",
      answer: z.looseObject({ openapi: z.string() }),
      handle: async ({ c }) => c.body(openApiText(), 200, { "content-type": "application/json" }),
    }),
  ],
};
