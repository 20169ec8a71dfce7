import type { Command } from "commander";
import { apiOptions, type ClientOptions, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput } from "../../output/output.ts";
import { CONFIG_OPTION } from "../machine.ts";

interface DoctorOptions extends Pick<ClientOptions, "url" | "output" | "field"> {
  readonly config?: string;
  readonly gatewayOnly?: boolean;
}

const COLORS = { ok: "green", warning: "yellow", wrong: "red" } as const;

export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  apiOptions(command)
    .option(...CONFIG_OPTION)
    .option("--gateway-only", "check only the gateway, not this machine")
    .action(async ({ url, config, output: format, field, gatewayOnly = false }: DoctorOptions) => {
      const output = createOutput(io, format, field);
      const { checkInstallation } = await import("../../doctor/installation.ts");
      const { checkGateway } = await import("../../doctor/gateway.ts");
      const checks = [
        ...(gatewayOnly ? [] : await checkInstallation(io.env, config)),
        ...(await checkGateway(io, url)),
      ];
      const found = checks.map((check) => ({
        ...check,
        suggestedAction: output.adapt(check.suggestedAction),
      }));
      output.list(found, [
        { title: "check", value: ({ check }) => check },
        { title: "state", value: ({ state }) => state, colors: COLORS },
        { title: "finding", value: ({ message }) => message, wraps: true },
        { title: "suggested action", value: ({ suggestedAction }) => suggestedAction, wraps: true },
      ]);
      context.exitCode = found.some(({ state }) => state === "wrong") ? EXIT.failed : EXIT.done;
    });
  examples(command, [
    ["inlet doctor", "check both; exits with 1 if any check fails"],
    ["inlet doctor --gateway-only --url https://inlet.example.com", "a remote gateway"],
  ]);
}
