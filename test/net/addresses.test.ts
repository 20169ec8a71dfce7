import { describe, expect, it } from "vitest";
import { createAddressCheck } from "../../src/net/addresses.ts";

const isPublic = createAddressCheck([]);

describe("outbound calls", () => {
  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
  ])("can reach the public address %s", (address) => expect(isPublic(address)).toBe(true));

  it.each([
    ["part of this host", "0.0.0.0", "0.1.2.3", "::"],
    ["loopback", "127.0.0.1", "127.255.255.254", "::1"],
    ["private", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00:ec2::254"],
    ["link-local, such as metadata services", "169.254.169.254", "fe80::1", "fe80::1%eth0"],
    ["in the shared address space of carriers", "100.64.0.1", "100.100.100.200"],
    [
      "reserved for protocols, tests and documentation",
      "192.0.0.1",
      "192.0.2.1",
      "198.18.0.1",
      "198.51.100.1",
      "203.0.113.1",
    ],
    ["multicast, broadcast or reserved", "224.0.0.1", "240.0.0.1", "255.255.255.255", "ff02::1"],
    ["IPv4 mapped into IPv6", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a00:1", "::ffff:169.254.169.254"],
    ["IPv4 embedded in IPv6", "::127.0.0.1", "::7f00:1", "::ffff:0:127.0.0.1", "::8.8.8.8"],
    ["a NAT64 address", "64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"],
    ["a 6to4 or Teredo address", "2002:7f00:1::", "2002:808:808::1", "2001::1"],
    [
      "reserved for documentation, discard or site-local use, or unassigned",
      "2001:db8::1",
      "3fff::1",
      "100::1",
      "fec0::1",
      "5f00::1",
      "4000::1",
    ],
    ["served by the underlying host", "168.63.129.16"],
    ["not valid", "", "localhost", "127.0.0.1:80", "[::1]", "256.1.1.1"],
  ])("cannot reach an address that is %s", (_, ...addresses) => {
    expect(addresses.filter((address) => isPublic(address))).toEqual([]);
  });

  it("can reach private addresses only in allowed networks, in any spelling of the address", () => {
    const isAllowed = createAddressCheck(["10.1.0.0/16", "fd00::/8", "127.0.0.1/32"]);
    const allowed = ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd12::1", "127.0.0.1", "8.8.8.8"];
    expect(allowed.filter((address) => !isAllowed(address))).toEqual([]);
    expect(["10.2.0.1", "127.0.0.2", "::1", "fe80::1"].filter((address) => isAllowed(address))).toEqual([]);
  });
});
