import { z } from "zod";
import type { MountedRoute } from "../mount.ts";
import type { Resource } from "../resource.ts";
import { definePublicRoute } from "../route.ts";
import { createDocument } from "./document.ts";
import type { DocumentedKinds } from "./kinds.ts";

export interface OpenApiDeps {
  readonly routes: () => readonly MountedRoute[];
  readonly hooksUrl: string;
  readonly channelKinds: DocumentedKinds;
}

export const openApi: Resource<OpenApiDeps> = {
  path: "/openapi.json",
  tag: "Operations",
  routes({ routes, hooksUrl, channelKinds }) {
    let text: string | undefined;
    return [
      definePublicRoute(
        {
          method: "get",
          path: "/",
          operation: "getOpenApi",
          summary: "Get the OpenAPI document",
          answer: z.looseObject({ openapi: z.string() }),
        },
        async ({ c }) => {
          text ??= JSON.stringify(createDocument({ routes: routes(), hooksUrl, kinds: channelKinds }));
          return c.body(text, 200, { "content-type": "application/json" });
        },
      ),
    ];
  },
};
