-- What tscap has put into a capture and Wireshark does not show: raw stamps, bounds and
-- losses. For Wireshark and tshark on Linux; tested with 4.0.
--
-- Wireshark gives plugins the packets only, without custom options of pcapng. This one finds
-- the open capture among the files of the process and reads the options itself.

set_plugin_info({
  version = "1",
  description = "Stamps, bounds and losses of tscap's captures",
})

local tscap = Proto("tscap", "tscap")
local fields = {
  clock = ProtoField.string("tscap.clock", "Clock of the stamps"),
  raw = ProtoField.uint64("tscap.raw", "Raw stamp"),
  bound = ProtoField.uint64("tscap.bound", "Bound against the host's clock (ns)"),
  lost = ProtoField.uint64("tscap.lost", "Frames of the interface lost so far"),
}
tscap.fields = fields

local PEN = 32473
local SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
local TEXT, BINARY = 2988, 2989
-- Outcomes that are no losses.
local NO_LOSS = { filtered = true, after_stop = true }
-- Blocks of tscap are smaller.
local LONGEST = 1024 * 1024
-- Stamps are compared as floating point numbers.
local NEAR = 2e-6

-- A capture: the file, how far it has been read, and what was found.
local Capture = {}
Capture.__index = Capture

function Capture.open(path)
  local file = io.open(path, "rb")
  local self = setmetatable({ file = file, at = 0 }, Capture)
  self.packets, self.statistics, self.clocks = {}, {}, {}
  return file and self
end

-- The number in `size` bytes behind `offset`.
function Capture:number(bytes, offset, size)
  local value = 0
  for i = 1, size do
    local byte = bytes:byte(offset + (self.big and i or size + 1 - i))
    value = value * 256 + byte
  end
  return value
end

-- The first custom option of tscap with that code, from an offset on.
function Capture:option(bytes, offset, wanted)
  while offset + 4 <= #bytes - 4 do
    local code, length = self:number(bytes, offset, 2), self:number(bytes, offset + 2, 2)
    if code == 0 then return nil end
    if code == wanted and length >= 4 and self:number(bytes, offset + 4, 4) == PEN then
      return bytes:sub(offset + 9, offset + 4 + length)
    end
    offset = offset + 4 + math.ceil(length / 4) * 4
  end
end

function Capture:add(kind, bytes)
  if kind == SECTION then
    self.clocks, self.statistics = {}, {}
  elseif kind == INTERFACE then
    local json = self:option(bytes, 16, TEXT) or ""
    table.insert(self.clocks, json:match('"source":"(%w+)"') or "")
    self.statistics[#self.clocks - 1] = {}
  elseif kind == PACKET then
    local high, low = self:number(bytes, 12, 4), self:number(bytes, 16, 4)
    local raw = self:option(bytes, 28 + math.ceil(self:number(bytes, 20, 4) / 4) * 4, BINARY)
    table.insert(self.packets, {
      interface = self:number(bytes, 8, 4),
      seconds = (high * 2 ^ 32 + low) / 1e9,
      caplen = self:number(bytes, 20, 4),
      -- A longer one is a hardware stamp.
      raw = raw and #raw == 8 and raw or nil,
    })
  elseif kind == STATISTICS then
    local json = self:option(bytes, 20, TEXT)
    local of = self.statistics[self:number(bytes, 8, 4)]
    if json and of then
      local lost = 0
      for name, count in json:match('"outcomes":(%b{})'):gmatch('"([%w_]+)":(%d+)') do
        if not NO_LOSS[name] then lost = lost + tonumber(count) end
      end
      local bound = tonumber(json:match('"host_bound_ns":(%d+)'))
      table.insert(of, { after = #self.packets, bound = bound, lost = lost })
    end
  end
end

-- Reads the next block; false where it is not there yet.
function Capture:read()
  self.file:seek("set", self.at)
  local head = self.file:read(12)
  if not head or #head < 12 then return false end
  local is_section = head:sub(1, 4) == "\10\13\13\10"
  if is_section then
    self.big = head:sub(9, 12) == "\26\43\60\77"
  elseif self.at == 0 then
    return false
  end
  local kind, length = self:number(head, 0, 4), self:number(head, 4, 4)
  if length < 12 or length > LONGEST then return false end
  local rest = self.file:read(length - 12)
  if not rest or #rest < length - 12 then return false end
  self:add(kind, head .. rest)
  self.at = self.at + length
  return true
end

function Capture:packet(number)
  while not self.packets[number] do
    if not self:read() then return nil end
  end
  return self.packets[number]
end

-- The first statistics of an interface behind a packet: they count it.
function Capture:statistics_behind(number, interface)
  local of = self.statistics[interface]
  while of and (#of == 0 or of[#of].after < number) do
    if not self:read() then return nil end
  end
  for i = #(of or {}), 1, -1 do
    if i == 1 or of[i - 1].after < number then return of[i] end
  end
end

function Capture:has(pinfo)
  local packet = self:packet(pinfo.number)
  return packet and packet.caplen == pinfo.caplen
    and math.abs(packet.seconds - pinfo.abs_ts) < NEAR
end

-- Whether a descriptor is a regular file that has been read: never a pipe, from which reading
-- would take away.
local function is_read_file(descriptor)
  local info = io.open("/proc/self/fdinfo/" .. descriptor)
  local position = info and info:read("*a"):match("pos:%s*(%d+)")
  if info then info:close() end
  return position and position ~= "0"
end

-- The open file that holds a packet.
local function find(pinfo)
  for descriptor in Dir.open("/proc/self/fd") do
    if is_read_file(descriptor) then
      local capture = Capture.open("/proc/self/fd/" .. descriptor)
      if capture and capture:has(pinfo) then return capture end
      if capture then capture.file:close() end
    end
  end
end

local capture

local function forget()
  if capture then capture.file:close() end
  capture = nil
end
-- Called for each file that is opened.
tscap.init = forget

function tscap.dissector(tvb, pinfo, tree)
  if not (capture and capture:has(pinfo)) then
    forget()
    capture = find(pinfo)
  end
  if not capture then return end
  local packet = capture.packets[pinfo.number]
  local clock = capture.clocks[packet.interface + 1] or ""
  if clock == "" then return end
  local branch = tree:add(tscap, "tscap")
  branch:add(fields.clock, clock)
  if packet.raw and #packet.raw == 8 then
    local first, second = capture:number(packet.raw, 0, 4), capture:number(packet.raw, 4, 4)
    local low, high = first, second
    if capture.big then low, high = second, first end
    branch:add(fields.raw, UInt64.new(low, high))
  end
  local statistics = capture:statistics_behind(pinfo.number, packet.interface)
  if statistics then
    branch:add(fields.bound, UInt64.new(statistics.bound))
    branch:add(fields.lost, UInt64.new(statistics.lost))
  end
end

register_postdissector(tscap)
