// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What C++ programs do with memory, with large allocations: run by preload.py, with and without
// libweft-mem.so. Prints 'done', and before it whether there is memory of the arena. One thread, and four.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	std::cerr << what << '\n';
	std::exit(1);
}

static bool has_arena()
{
	std::ifstream maps("/proc/self/maps");
	std::string line;

	while (std::getline(maps, line))
		if (line.find("weft-arena") != std::string::npos)
			return true;
	return false;
}

struct alignas(256) Wide {
	char bytes[256];
};

// A vector that grows moves its elements; its memory is new and old at the same time.
static void vectors_grow()
{
	std::vector<std::uint64_t> numbers;

	for (std::uint64_t i = 0; i < (4u << 20); i++)
		numbers.push_back(i);
	require(std::accumulate(numbers.begin(), numbers.end(), std::uint64_t(0)) ==
			(std::uint64_t(4u << 20) * ((4u << 20) - 1)) / 2,
		"a vector that grew has other numbers");
	numbers.resize(10);
	numbers.shrink_to_fit();
	require(numbers.back() == 9, "a vector that shrank has other numbers");
}

static void wide_types_are_aligned()
{
	for (std::size_t cnt = 1; cnt < (1u << 16); cnt *= 3) {
		auto wide = std::make_unique<Wide[]>(cnt);

		require(reinterpret_cast<std::uintptr_t>(wide.get()) % alignof(Wide) == 0, "alignment");
	}
	void *page = ::operator new(1u << 20, std::align_val_t(1u << 16));

	require(reinterpret_cast<std::uintptr_t>(page) % (1u << 16) == 0, "alignment of operator new");
	::operator delete(page, 1u << 20, std::align_val_t(1u << 16));
}

static void too_much_is_an_exception()
{
	volatile std::size_t huge = SIZE_MAX / 4;
	bool thrown = false;

	try {
		std::vector<char> never(huge);
	} catch (const std::exception &) {
		thrown = true;
	}
	require(thrown, "no exception for too much");
	require(!::operator new(huge, std::nothrow), "memory where there is none");
}

static void pools_and_strings()
{
	std::pmr::unsynchronized_pool_resource pool;
	std::pmr::map<int, std::pmr::string> texts(&pool);

	for (int i = 0; i < 200; i++)
		texts[i] = std::pmr::string(static_cast<std::size_t>(i + 1) << 10, static_cast<char>('a' + i % 26),
					    &pool);
	for (const auto &[i, text] : texts)
		require(text.size() == static_cast<std::size_t>(i + 1) << 10 && text.back() == 'a' + i % 26,
			"a text of a pool");
}

// What one thread allocates another one frees.
static void threads_pass_memory_on()
{
	std::vector<std::unique_ptr<std::vector<int>>> made(64);
	std::vector<std::thread> threads;

	for (std::size_t t = 0; t < 4; t++)
		threads.emplace_back([&made, t] {
			for (std::size_t i = t; i < made.size(); i += 4)
				made[i] = std::make_unique<std::vector<int>>(100000 + i * 1000, static_cast<int>(i));
		});
	for (auto &thread : threads)
		thread.join();
	threads.clear();
	for (std::size_t t = 0; t < 4; t++)
		threads.emplace_back([&made, t] {
			for (std::size_t i = (t + 1) % 4; i < made.size(); i += 4) {
				for (int number : *made[i])
					require(number == static_cast<int>(i), "memory of another thread");
				made[i].reset();
			}
		});
	for (auto &thread : threads)
		thread.join();
}

int main()
{
	vectors_grow();
	wide_types_are_aligned();
	too_much_is_an_exception();
	pools_and_strings();
	threads_pass_memory_on();
	std::vector<char> large(8u << 20);
	std::cout << (has_arena() ? "arena " : "") << "done\n";
}
