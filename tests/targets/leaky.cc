// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A little service with a fault that people really have: a cache of rendered pages whose key
 * holds the time, so that nothing is ever found in it and nothing ever leaves. Everything else
 * comes and goes. For scripts/demo.sh; runs until it is told to stop.
 * build: -std=c++17
 */
#include <chrono>
#include <cstdio>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile std::sig_atomic_t stopped;

namespace service
{

struct Page {
	std::string title;
	std::vector<char> body;
};

/* Pages by URL and "version". The version is the fault: it is different each time. */
class PageCache
{
      public:
	const Page &get(const std::string &url, long version)
	{
		std::string key = url + "?v=" + std::to_string(version);
		auto found = pages_.find(key);

		if (found == pages_.end())
			found = pages_.emplace(key, render(url)).first;
		return *found->second;
	}

      private:
	static std::unique_ptr<Page> render(const std::string &url)
	{
		auto page = std::make_unique<Page>();

		page->title = "The page that is found at " + url;
		page->body.resize(6000 + url.size() * 100);
		return page;
	}

	std::map<std::string, std::unique_ptr<Page>> pages_;
};

/* The last hundred sessions: growing at first, then steady. */
class Sessions
{
      public:
	void begin(long user)
	{
		sessions_.push_back(std::make_unique<std::vector<long>>(512, user));
		if (sessions_.size() > 100)
			sessions_.pop_front();
	}

      private:
	std::deque<std::unique_ptr<std::vector<long>>> sessions_;
};

/* Much garbage, none of which stays. */
static size_t parse_request(long number)
{
	std::vector<std::string> headers;

	for (int i = 0; i < 20; i++)
		headers.push_back("X-Header-" + std::to_string(number) + ": some value, not short");
	return headers.size();
}

static void serve()
{
	PageCache cache;
	Sessions sessions;

	for (long number = 0; !stopped; number++) {
		parse_request(number);
		sessions.begin(number % 1000);
		cache.get("/article/" + std::to_string(number % 50), number);
		std::this_thread::sleep_for(std::chrono::microseconds(500));
	}
}

} // namespace service

int main()
{
	std::signal(SIGTERM, [](int) { stopped = 1; });
	std::signal(SIGINT, [](int) { stopped = 1; });
	std::printf("serving as process %d\n", static_cast<int>(getpid()));
	std::fflush(stdout);
	service::serve();
	return 0;
}
